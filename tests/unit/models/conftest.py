from tests.servers.fixtures import model_server as model_server

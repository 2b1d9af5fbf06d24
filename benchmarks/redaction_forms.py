# ruff: noqa: E501, RUF001 - a form is not broken, and a colon of another script is one
"""The forms of `redaction.py`: `{an36}` is 36 random letters and digits, `{hex..}` hexadecimal,
`{up..}` capitals and digits, `{low..}` small letters and digits, `{dig..}` digits, `{let..}` letters,
`{url..}` URL-safe base64, `{b64..}` base64, `{pw..}` a password, `{sp..}` one with other signs. The
longest random part of a form is its secret.
"""

from __future__ import annotations

from typing import Any

ISSUERS = """
ghp_{an36} | gho_{an36} | ghu_{an36} | ghs_{an36} | ghr_{an36} | github_pat_{an22}_{an59}
glpat-{url20} | gldt-{url20} | glrt-{url20} | glptt-{hex40} | glcbt-64_{url20} | glft-{url20}
glimt-{url25} | glsoat-{url20} | glagent-{url50} | gloas-{hex64} | GR1348941{url20}
sk-{an48} | sk-proj-{url64}T3BlbkFJ{url64} | sk-svcacct-{url80} | sk-ant-api03-{url93}AA
sk-ant-admin01-{url93}AA | sk-or-v1-{hex64} | sk-lf-{hex8}-{hex4}-{hex12} | gsk_{an52} | xai-{an80}
pplx-{an48} | r8_{an37} | hf_{let34} | api_org_{let34} | tvly-{an32} | AIza{url35} | ya29.{url120}
GOCSPX-{url28} | 1//0{url60} | AKIA{up16} | ASIA{up16} | ABSK{b64_132} | xoxb-{dig12}-{dig13}-{an24}
xoxp-{dig12}-{dig12}-{dig13}-{hex32} | xoxa-2-{dig12}-{dig12}-{hex32} | xapp-1-A{up10}-{dig13}-{hex64}
xoxe.xoxp-1-{an160} | xoxc-{dig12}-{dig12}-{hex64} | xoxs-{dig12}-{dig12}-{hex10}
https://hooks.slack.com/services/T{up8}/B{up10}/{an24} | sk_live_{an24} | sk_test_{an99}
rk_live_{an24} | whsec_{b64_32} | npm_{an36} | pypi-AgEIcHlwaS5vcmc{url150} | rubygems_{hex48}
dop_v1_{hex64} | doo_v1_{hex64} | dor_v1_{hex64} | SG.{url22}.{url43} | xkeysib-{hex64}-{an16}
key-{hex32} | {hex32}-us14 | SK{hex32} | shpat_{hex32} | shpss_{hex32} | shpca_{hex32} | shppa_{hex32}
sq0atp-{url22} | sq0csp-{url43} | EAAA{url60} | EAAC{an120} | shippo_live_{hex40} | lin_api_{an40}
ntn_{dig11}{an35} | secret_{an43} | PMAK-{hex24}-{hex34} | pul-{hex40} | pscale_tkn_{url43}
pscale_pw_{url43} | pscale_oauth_{url43} | glsa_{an32}_{hex8} | glc_{b64_80} | sntryu_{hex64}
sntrys_{b64_120}_{an43} | hvs.{url95} | hvb.{url140} | {an14}.atlasv1.{url67} | dp.pt.{an43}
dapi{hex32} | dckr_pat_{url27} | NRAK-{up27} | NRII-{url32} | HRKU-AA{url58} | ATATT3{url186}
LTAI{an20} | AKCp{an69} | cmVmd{an59} | {dig10}:AA{url33} | M{let23}.{an6}.{url27}
https://discord.com/api/webhooks/{dig18}/{url68} | AGE-SECRET-KEY-1{up58} | fo1_{url43}
fm2_{b64_120} | A3-{up6}-{up11}-{up5}-{up5}-{up5} | ops_eyJ{b64_260} | dt0c01.{up24}.{up64}
duffel_live_{url43} | FLWSECK_TEST-{hex32}-X | EZAK{an54} | fio-u-{url64} | rdme_{low70} | ico-{an32}
pnu_{an36} | sgp_{hex40} | tfp_{an44}_{an14} | pat.{url22}.{an24}.{an20} | API-{up26}
{an6}_{an29}_mmk | {an3}8Q~{url34} | sbp_{hex40} | nfp_{an36} | sha256~{url43} | figd_{url40}
tskey-auth-{an12}CNTRL-{an32} | phx_{an43} | re_{an8}_{an24} | access-production-{hex8}-{hex4}-{hex4}-{hex4}-{hex12}
AQVN{url36} | CCIPAT_{an22}_{hex40} | p8e-{low32} | crates_{an32} | nvapi-{url64} | tk-us-{url48}
"""

# Names of a value that is a secret.
KEYS = """
password Password PASSWORD passwd db_password dbPassword DATABASE_PASSWORD admin-password userPwd pwd
passphrase secret client_secret clientSecret app.secret api_key apiKey API-KEY x-api-key X-Auth-Token
apikey access_token accessToken refresh_token id_token bearer_token auth_token authToken sessionToken
csrf_token private_key privateKey signing_key encryption_key ENCRYPTION_KEY aws_secret_access_key
AWS_SESSION_TOKEN account_key AccountKey SharedAccessKey connection_string ConnectionString
credentials creds authorization Authorization Proxy-Authorization Cookie Set-Cookie set_cookie jwt
token github_token slack_webhook_secret webhook_secret otp totp_secret mfa_code pin cvv card_number
ssn license_key master_key PHPSESSID JSESSIONID sid dsn SENTRY_DSN reset_token verify_token hmac_key
SECRET_KEY_BASE django_secret_key lösenord passwort secret_id app_key consumer_secret sig signature
"""

NAMES = ("password", "api_key", "DB_PASSWORD", "client_secret", "accessToken", "secret-key", "pwd")

# Seven syntaxes and some more, for each of NAMES.
SYNTAXES = (
    '{name} = "{pw14}"',
    "{name}='{sp16}'",
    "export {name}={pw16}",
    "{name}: {pw13}",
    '"{name}": "{sp18}",',
    "{name} := `{pw14}`",
    "'{name}' => '{sp14}',",
    'settings["{name}"] = "{pw14}"',
    "config['{name}']='{hex32}'",
    'connect(host="db", {name}="{sp14}", timeout=3)',
    '{name}: str = "{pw16}"',
    "const {name}: string = '{pw15}';",
    "  {name}: '{sp14}'  # of the service",
    "--{name}={pw14} --verbose",
    "--{name} {pw14} --verbose",
    "tried {name}={pw14}, then gave up",
    "retry with {name}: {pw14}; 3 left",
    '{{\\"{name}\\": \\"{pw14}\\"}}',
    "https://api.example.org/v1?user=bob&{name}={pw14}&page=2",
    "{name} = '''{pw14}'''",
    "{name}=b'{pw14}'",
    '    self.{name} = "{pw14}"',
    "$config->{name} = '{pw14}';",
    "{name}%3D{pw14}%26user%3Dbob",
)

TEXTS: dict[str, str] = {
    "headers": """
Authorization: Bearer {an40}
---
> Authorization: Basic {b64_24}
---
Authorization: Token {hex40}
---
{'Authorization': 'Bearer {url43}'}
---
{b'authorization': b'Basic {b64_24}'}
---
headers={"X-Api-Key": "{an32}", "Accept": "*/*"}
---
curl -H "Authorization: Bearer {an40}" https://api.example.org/v1
---
curl -H 'X-Auth-Token: {hex32}' https://api.example.org
---
[('authorization', 'Bearer {an36}'), ('accept', '*/*')]
---
Proxy-Authorization: Basic {b64_32}
---
Authorization: Digest username="bob", realm="x", nonce="abc", response="{hex32}"
---
Authorization: AWS4-HMAC-SHA256 Credential=AKIA{up16}/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature={hex64}
---
X-Amz-Security-Token: {b64_120}
---
Ocp-Apim-Subscription-Key: {hex32}
---
request headers: Headers({'host': 'x', 'authorization': 'ApiKey {an40}'})
---
x-goog-api-key: {an39}
---
PRIVATE-TOKEN: {url20}
---
got 401 for Bearer {url60} from the server
---
HTTP_AUTHORIZATION=Bearer {an40}
---
"Authorization": ["Bearer {an40}"]
""",
    "cookies": """
Cookie: sessionid={an32}; theme=dark
---
Set-Cookie: PHPSESSID={low26}; path=/; HttpOnly
---
Set-Cookie: JSESSIONID={up32}; Path=/app; Secure
---
{'Cookie': 'sid={url32}; lang=en'}
---
cookies: connect.sid=s%3A{url32}
---
ASP.NET_SessionId={low24}
---
the server sent PHPSESSID={low26} twice
---
-b 'JSESSIONID={up32}'
---
"set-cookie": "auth={url43}; Max-Age=3600"
---
Cookie: _gitlab_session={hex32}
---
cookie = "session={url40}"
---
csrftoken={an64}; sid={an32}
""",
    "dsn": """
postgresql://app:{pw14}@db.internal:5432/app
---
mysql+pymysql://root:{sp14}@10.0.0.4/shop?charset=utf8
---
redis://:{pw20}@cache:6379/0
---
amqp://guest:{pw12}@rabbit:5672/%2F
---
mongodb+srv://admin:{pw16}@cluster0.abcde.mongodb.net/?retryWrites=true
---
https://bob:{pw14}@git.example.org/team/repo.git
---
https://{an40}@github.com/team/repo.git
---
https://x-access-token:{an40}@github.com/team/repo.git
---
could not connect to 'postgres://svc:{sp12}@pg/main': timeout
---
smtp://mailer%40example.org:{pw14}@smtp.example.org:587
---
ftp://upload:{pw10}@files.example.org/in
---
https://{hex32}:{hex32}@o123.ingest.example.io/42
---
DATABASE_URL=postgres://u:{pw14}@h/d
---
ldap://cn=admin,dc=x:{pw14}@ldap.example.org
---
clickhouse://default:{pw8}/{pw6}@ch:9000/db
---
socks5://user:{pw12}@127.0.0.1:1080
""",
    "connection strings": """
Server=tcp:db.example.net,1433;Database=shop;User ID=sa;Password={sp16};Encrypt=True;
---
Data Source=db;Initial Catalog=x;User Id=sa;Pwd={pw14};
---
DefaultEndpointsProtocol=https;AccountName=store;AccountKey={b64_88};EndpointSuffix=core.windows.net
---
Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={b64_44}
---
host=db port=5432 user=app password={pw14} dbname=shop
---
jdbc:postgresql://db/shop?user=app&password={pw14}&ssl=true
---
jdbc:sqlserver://db;databaseName=x;user=sa;password={pw14};
---
jdbc:oracle:thin:scott/{pw12}@db:1521/xe with password={pw14}
---
DRIVER={ODBC Driver 18};SERVER=db;UID=sa;PWD={sp14}
---
AccountEndpoint=https://x.documents.azure.com:443/;AccountKey={b64_88};
---
redis:6380,password={b64_44},ssl=True,abortConnect=False
---
HostName=hub.azure-devices.net;DeviceId=d1;SharedAccessKey={b64_44}
---
https://store.blob.core.windows.net/c?sv=2022-11-02&se=2026-01-01&sig={url43}%3D
---
https://s3.example.org/b/k?X-Amz-Credential=AKIA{up16}&X-Amz-Signature={hex64}
""",
    "xml": """
<password>{pw14}</password>
---
<wsse:Password Type="PasswordText">{pw14}</wsse:Password>
---
<add key="Password" value="{pw14}" />
---
<property name="connection.password">{pw14}</property>
---
<property name="password" value="{sp14}"/>
---
<property><name>fs.s3a.secret.key</name><value>{b64_40}</value></property>
---
<string name="api_key">{an39}</string>
---
<key>ClientSecret</key>
<string>{an32}</string>
---
<server><id>nexus</id><username>ci</username><password>{pw14}</password></server>
---
<user name="bob" password="{pw14}"/>
---
<apiKey><![CDATA[{an32}]]></apiKey>
---
<ns2:accessToken xmlns:ns2="urn:x">{an40}</ns2:accessToken>
---
<input type="hidden" name="csrf_token" value="{an64}">
---
<secret>
    {hex32}
</secret>
---
&lt;password&gt;{pw14}&lt;/password&gt;
""",
    "sql": """
CREATE USER 'app'@'%' IDENTIFIED BY '{pw14}';
---
ALTER USER sa WITH PASSWORD = '{sp14}';
---
ALTER ROLE app WITH LOGIN PASSWORD '{pw14}';
---
CREATE ROLE app ENCRYPTED PASSWORD '{pw14}' VALID UNTIL 'infinity'
---
GRANT ALL ON *.* TO 'root'@'localhost' IDENTIFIED BY "{pw14}"
---
SET PASSWORD FOR 'bob'@'%' = PASSWORD('{pw14}');
---
UPDATE users SET password = '{pw14}' WHERE id = 3
---
[SQL: UPDATE users SET api_key='{hex32}' WHERE id=%(id)s]
---
SELECT * FROM t WHERE token = '{hex40}'
---
CREATE USER app IDENTIFIED BY {pw14};
---
[parameters: {'name': 'bob', 'password_hash': '$2b$12${an53}'}]
---
[parameters: {'name': 'bob', 'password': '{pw14}'}]
---
CREATE LOGIN app WITH PASSWORD = N'{pw14}';
---
CREATE USER MAPPING FOR bob SERVER s OPTIONS (user 'bob', password '{pw14}');
---
INSERT INTO accounts SET name='bob', secret='{pw14}'
""",
    "yaml": """
database:
  host: db
  password: {sp14}
---
password: "{sp14}"
---
api_key: >-
  {an40}
---
token: |
  {an40}
---
stringData:
  admin-password: {pw14}
---
data:
  client-secret: {b64_24}
---
- password: {pw14}
---
auth: {username: bob, password: {pw14}}
---
env:
  - name: DB_PASSWORD
    value: {pw14}
---
  - name: API_KEY
    value: "{an32}"
---
- name: GITHUB_TOKEN
  value: '{an40}'
---
  - value: {pw14}
    name: DB_PASSWORD
---
environment:
  - POSTGRES_PASSWORD={pw14}
---
secret_key: correct-{pw12} horse
---
passphrase: {pw6} {pw9} {pw12}
---
users:
  bob: {password: '{pw14}', role: admin}
---
//registry.npmjs.org/:_authToken={hex8}-{hex32}
---
machine api.example.org login bob password {pw14}
---
smtp_password = {sp14}
---
spring.datasource.password={sp14}
---
[default]
aws_access_key_id = x
aws_secret_access_key = {b64_40}
---
requirepass {pw20}
---
_password={b64_24}
---
ansible_become_pass: {pw14}
---
[connection]
psk={pw14}
---
"tls.key": "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t{b64_120}"
""",
    "pem": """
-----BEGIN RSA PRIVATE KEY-----
{b64_64}
{b64_64}
-----END RSA PRIVATE KEY-----
---
-----BEGIN PRIVATE KEY-----\\n{b64_64}\\n{b64_64}\\n-----END PRIVATE KEY-----\\n
---
"private_key": "-----BEGIN PRIVATE KEY-----\\n{b64_64}\\n-----END PRIVATE KEY-----\\n", "client_email": "x"
---
-----BEGIN OPENSSH PRIVATE KEY-----
{b64_70}
{b64_70}
-----END OPENSSH PRIVATE KEY-----
---
-----BEGIN EC PRIVATE KEY-----
{b64_64}
---
-----BEGIN ENCRYPTED PRIVATE KEY-----
{b64_64}
-----END ENCRYPTED PRIVATE KEY-----
---
-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,{hex32}

{b64_64}
-----END RSA PRIVATE KEY-----
---
-----BEGIN PGP PRIVATE KEY BLOCK-----

{b64_64}
=x9Qa
-----END PGP PRIVATE KEY BLOCK-----
---
> -----BEGIN PRIVATE KEY-----
> {b64_64}
> -----END PRIVATE KEY-----
---
    -----BEGIN DSA PRIVATE KEY-----
    {b64_64}
    -----END DSA PRIVATE KEY-----
---
['-----BEGIN PRIVATE KEY-----', '{b64_64}', '{b64_64}', '-----END PRIVATE KEY-----']
---
-----BEGIN PRIVATE KEY----- {b64_64} {b64_64} -----END PRIVATE KEY-----
---
key = (
    "-----BEGIN PRIVATE KEY-----\\n"
    "{b64_64}\\n"
    "-----END PRIVATE KEY-----\\n"
)
---
LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ{b64_160}
---
---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----
{b64_64}
---- END SSH2 ENCRYPTED PRIVATE KEY ----
---
-----BEGIN OpenVPN Static key V1-----
{hex32}
-----END OpenVPN Static key V1-----
""",
    "encoded": """
Authorization: Basic {b64_28}
---
eyJhbGciOiJIUzI1NiJ9.eyJ{url60}.{url43}
---
token eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{url160}.{url342}
---
eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..{url16}.{url80}.{url22}
---
got eyJhbGciOiJub25lIn0.eyJ{url60}.
---
b'password={pw14}'
---
b'{"api_key": "{an32}"}'
---
bytearray(b'token={an32}')
---
{"data": "{\\"secret\\": \\"{an32}\\"}"}
---
error:\\npassword={pw14}\\nuser=bob
---
line one\\nghp_{an36}\\nline three
---
body: user%3Dbob%26password%3D{pw14}
---
next=%2Fcb%3Faccess_token%3D{an40}
---
"{\\\\\\"password\\\\\\": \\\\\\"{pw14}\\\\\\"}"
---
password\\u003d{pw14}
---
&quot;password&quot;: &quot;{pw14}&quot;
---
\x1b[31mpassword: {pw14}\x1b[0m
""",
    "tracebacks": """
Traceback (most recent call last):
  File "app/db.py", line 12, in connect
    conn = connect("db", password="{pw14}")
OperationalError: timed out
---
ValueError: bad key {an40}
the above was caused by: AuthError: invalid api_key '{an32}'
---
KeyError: 'x'

During handling of the above exception, another exception occurred:

RuntimeError: login failed for bob with password='{sp14}'
---
  > 12     API_KEY = "{an32}"
    13     client = Client(API_KEY)
---
    10  settings["password"] = "{pw14}"
---
    os.environ["DB_PASSWORD"] = "{pw14}"
---
    os.environ.setdefault("SECRET_KEY", "{an50}")
---
    client.login("bob", password='{pw14}')
---
    headers = {"Authorization": f"Bearer {an40}"}
---
    requests.get(url, auth=("bob", "{pw14}"))
---
AuthenticationError: Incorrect API key provided: {an40}. You can find your key online.
---
subprocess.CalledProcessError: Command '['mysql', '--password', '{pw14}']' returned 1
---
Command 'mysql -u root -p{pw14} shop' returned non-zero exit status 1
---
Command ['curl', '-u', 'bob:{pw14}', 'https://x.org'] failed
---
ValidationError: 1 error for Settings [type=x, input_value={'token': '{an32}'}, input_type=dict]
---
Login(user='bob', password='{pw14}')
---
conn = psycopg.connect("host=db password={pw14}")
---
    token: str = "{an32}"
---
    TOKEN: Final = "{an32}"
---
    db.set_password("{pw14}")
---
    monkeypatch.setenv("API_KEY", "{an32}")
---
docker login -u bob -p {pw14} registry.example.org
---
sshpass -p {pw14} ssh bob@host
---
OperationalError: FATAL: password authentication failed (tried "password={pw14}")
---
    "password": SecretStr("{pw14}"),
---
    password = getenv("DB_PASSWORD", "{pw14}")
---
    if password == "{pw14}":
""",
    "columns": """
user, password = "bob", "{pw14}"
---
INSERT INTO users (name, password) VALUES ('bob', '{pw14}')
---
user,password
bob,{pw14}
---
| password | {pw14} |
---
db.example.org:5432:app:bob:{pw14}
---
setattr(config, "password", "{pw14}")
---
add_argument("--password", default="{pw14}")
---
password: SecretStr = Field(default="{pw14}")
---
password=lambda: "{pw14}"
---
HTTPBasicAuth("bob", "{pw14}")
""",
    "arguments": """
if not check_password("{pw14}"):
---
assert user.check_password('{sp14}')
---
check_password("{pw14}", user.password_hash)
---
ok = check_password_hash(row.hash, "{pw14}")
---
bcrypt.verify_password("{pw16}", stored)
---
user.password = make_password("{pw14}")
---
digest = hmac.new(b"{pw16}", body, hashlib.sha256).hexdigest()
---
hmac.new("{an32}".encode(), body, "sha256")
---
hmac.digest(b'{hex32}', body, "sha256")
---
token = jwt.encode({"sub": "bob", "exp": soon}, "{pw16}", algorithm="HS256")
---
jwt.encode(payload, '{an32}')
---
claims = jwt.decode(token, "{pw16}", algorithms=["HS256"])
---
jwt.decode(request.headers.get("X-Id"), "{an24}", algorithms=["HS256"])
---
if token == "{an24}":
---
assert api_key == '{hex32}'
---
if request.headers.get("X-Api-Key") != secret and secret != "{pw14}":
---
if (apiKey === "{an24}") {
---
GET https://maps.example.org/api/geocode?key={an32}&address=Paris
---
https://api.example.org/v1/search?q=rain&key={hex32}
---
GET /v1/items?key={an24} HTTP/1.1" 403
""",
    "programs": """
sqlplus scott/{pw12}@db
---
ftp> PASS {pw12}
---
a1 LOGIN bob {pw14}
---
net use \\\\server\\share /user:bob {pw14}
---
bindpw {pw14}
---
WIFI:S:net;T:WPA;P:{pw14};;
---
proxy_set_header Authorization "Basic {b64_24}";
---
<input name="password" type="text" value="{pw14}">
""",
    "prose": """
my password is {pw12}
---
The wifi password is {pw12}!
---
the password for the router is "{pw12}"
---
Mein Passwort ist {pw12}.
---
Mitt lösenord är {pw12}
---
mon mot de passe est {pw12}
---
use the API key {an32} for it
---
API key: {an32}
---
Access token: {an40}
---
Client Secret = {an32}
---
the pin code {dig6} opens it
---
login with token {an40}
---
her password was {pw12}, she said
---
Invalid credentials: bob / password {pw14}
---
secret access key is {b64_40}
""",
}

# What stands in entries and is nobody's secret.
LOOK_ALIKES: dict[str, str] = {
    "measures": """
max_tokens=512 | prompt_tokens: 1200, completion_tokens: 33 | total_tokens=1233 | token_count: 12
"max_tokens": 4096 | token_ids=[101, 2023, 102] | "token_ids": [1, 2] | stop_tokens=["</s>"]
"stop_tokens": ["###", "END"] | max_new_tokens: 64 | tokens_per_second=31.5 | tokens used: 1500 of 4096
context window of 8192 tokens | password_length=12 | min_password_length: 8 | token_limit=100000
cached_tokens=0 | "tokens": 12 | num_tokens = len(ids) | token budget 4000 | output_tokens=17
pass=31 fail=2 | pass: 31, fail: 2 | cookies: 3 | secrets_count=4 | tokens left: 12
""",
    "names": """
token_url=https://auth.example.org/oauth/token | "token_url": "https://x.org/token"
token_endpoint: https://x.org/token | api_key_env=OPENAI_API_KEY | "api_key_env": "ANTHROPIC_API_KEY"
password_file=/run/secrets/db | secret_name: db-credentials | secretName: tls-cert
credentials_path=/etc/app/credentials.json | auth_type=oauth2 | token_type: bearer
"token_type": "Bearer" | auth_method=ldap | password_policy: strict | password_field="pw"
cookie_name=sessionid | cookie_domain: .example.org | cookie_path=/ | key_file=/etc/ssl/x.key
password_required=true | has_password: true | use_auth=false | token_expired=True
token_expires_at=2026-01-01T00:00:00Z | password_changed_at: 2025-05-05 | auth_url=https://x.org
author: Jane Doe | authority=example.org | session_id=abc123def456 | "session_id": "s-81f2"
request_id=7f3a2b1c9d8e4f50 | primary_key=id | foreign_key: user_id | public_key_path=/etc/x.pub
sort_key=created_at | cache_key=user:42:profile | partition_key: tenant-17 | monkey=george | key=value
turkey: roasted | keyboard=qwerty | compass: north | passenger=Jane | bypass=true | tokenizer=cl100k_base
secretary: Jane | next_token=page-3 | auth_backend=ldap.Backend | token_prefix=ghp
auth_enabled: yes | csrf_protection: on | csrf_cookie_name=csrftoken | credential_type=service_account
signature_version=s3v4 | signature_algorithm: SHA256withRSA | jwt_algorithm=RS256 | password_hasher=argon2
""",
    "code": """
def login(user: str, password: str) -> Token: | password: str | token: Optional[str] = None
password: SecretStr | if identity_token == other_token: | if token != expected_token:
identity_token == request.token | token = next(tokens) | password = os.environ["DB_PASSWORD"]
api_key=os.getenv("OPENAI_API_KEY") | client = Client(api_key=settings.API_KEY) | password = getpass.getpass()
token=self._token | headers["Authorization"] = f"Bearer {token}" | password=password | token=token,
secret = get_secret("db/main") | return jwt.decode(token, key) | for token in tokens: | password = None
api_key: str = Field(...) | self.token = token | del headers["Authorization"] | raise InvalidToken(token)
password = config.get("db", "password") | auth=HTTPBasicAuth(user, password) | assert token is None
`password` VARCHAR(255) NOT NULL | WHERE password = :password | WHERE token = ? | SET password = %(password)s
password = ${DB_PASSWORD} | password: ${{ secrets.DB_PASSWORD }} | --password $DB_PASSWORD
password: {{ vault_password }} | password=<password> | api_key=YOUR_API_KEY | "api_key": "your-api-key-here"
postgres://user:${PASSWORD}@db/x | token: string; | private readonly token: string | password?: string;
lambda token: token.text | tokens = text.split() | key = (phase, tool) | parser.add_argument("--token")
from app.secrets import redact_text | import secrets | secrets.token_hex(16) | cookies = response.cookies
class TokenError(Exception): | password = "********" | secret: true | token = None | auth = None
check_password(password) | user.check_password(form.password.data) | verify_password(plain, hashed) | check_password_hash(h, p)
hmac.new(key, body, hashlib.sha256) | hmac.new(self.key.encode(), msg, "sha256") | hmac.compare_digest(a, b)
jwt.encode(payload, key, algorithm="HS256") | jwt.decode(token, settings.KEY, algorithms=["RS256"]) | jwt.get_unverified_header(t)
if token == "EOF": | token == "(" | tokens == ["a", "b"] | if token != "Bearer": | auth == "basic" | token == other.token
/items?key=name&order=desc | ?key=uploads/2024-01-01/report.pdf | ?key=user-profile | &key=page2 | ?key=created_at
""",
    "messages": """
Unexpected token: comma | Unexpected token '}' at position 12 | SyntaxError: Unexpected token < in JSON
invalid token near line 3 | Invalid password: must be longer | the password is too short
password: This field is required. | "password": ["This field may not be blank."] | the token is expired
the --password option is required | Authentication failed: token expired | no credentials were provided
password authentication failed for user "bob" | Access token has expired | the secret "db-creds" not found
missing Authorization header | Authorization: Bearer <token> | WWW-Authenticate: Bearer realm="example"
WWW-Authenticate: Basic realm="Restricted" | Basic authentication is off | Bearer authentication required
the key is an API key of 32 characters | token refresh failed after 3 tries | cookie consent was given
a basic understanding of tokenization | GPIO pin 1234 | pin the version to 2.0.1 | secret santa is at 6 pm
password must be at least 8 characters | the pass rate is 93 % | please sign in with your password
the token count is 12 | token bucket: 5 of 10 | pass the salt | he passed: 3 of 4 | signature mismatch for x.whl
expected token: identifier | sealed secret: default/db | Digest mismatch | see auth/tokens.py:31: in login
""",
    "identifiers": """
commit {hex40} | sha256:{hex64} | {hex8}-{hex4}-{hex4}-{hex4}-{hex12} | etag "{hex32}" | md5 {hex32}
int_20260101_120000_{hex6} | trace_id={hex32} | span_id={hex16} | image@sha256:{hex64}
data:image/png;base64,iVBORw0KGgo{b64_40} | turn_000042 | build {dig10} | order {dig12}
https://example.org/a/{hex24} | user_id={dig9} | file_{hex24}.bin | request {hex16} | v1.2.3-{hex7}
integrity sha512-{b64_88} | correlation-id: {hex32} | ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{b64_44} bob
-----BEGIN PUBLIC KEY-----\\n{b64_64}\\n-----END PUBLIC KEY----- | arn:aws:s3:::bucket/{hex16}
-----BEGIN CERTIFICATE-----\\n{b64_64}\\n-----END CERTIFICATE----- | etag=W/"{hex16}" | blob {hex40}
fingerprint={hex16} | SHA256:{b64_43} | cid=bafy{low40} | 0x{hex40} | chunk-{hex20}.js | pod/web-{low10}-{low5}
""",
    "like issuers": """
sk-learn-something-long-package-name | task-{dig16} | risk-free | ask-me-anything-about-it
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | xoxb-your-token-here | sk-your-api-key-here | pypi-publish-action
glpat-your-token-goes-here | hf_hub_download | npm_config_registry | key-value-store-for-the-cache
skip_live_tests | pk_column_of_the_table | api_org_chart | re_compile_flags | SG.example | AKIA is a prefix
sdk-for-python-and-java | a token starts with sk-... | eyJ is how they begin | npm_lifecycle_event
github_pat_ is a prefix | pat-na1 region | whsec_... | secret_santa_list_of_the_office | dapi_server
""",
    "addresses": """
http://localhost:8080/v1/chat | https://example.org/token | http://auth:8080/health | git@github.com:a/b.git
https://registry.npmjs.org/@scope/pkg | http://localhost:4873/@scope/pkg | mailto:bob@example.org
postgresql://db.internal:5432/app | postgres://app@db/app | ssh://git@host:22/x | user@host:/path
/var/run/secrets/kubernetes.io/serviceaccount | C:\\secrets\\readme.txt | docs/howto/csrf.txt:12
secrets/names.py:41 | auth.py:12 | token.py: line 3 | tests/test_password.py::test_login | redis://cache:6379/0
docker run -u 1000:1000 x | chmod u=rw,g=r secrets.toml | curl -u bob https://x.org | 10.0.0.1:443 secret.log
""",
}

LOOK_ALIKE_VALUES: tuple[Any, ...] = (
    {"max_tokens": 100, "model": "m"}, {"usage": {"prompt_tokens": 1, "total_tokens": 2}},
    {"token_ids": [1, 2, 3]}, {"stop_tokens": ["</s>"]}, {"token_url": "https://x.org/token"},
    {"api_key_env": "OPENAI_API_KEY"}, {"author": "Jane"}, {"session_id": "s-1"}, {"key": "value"},
    {"token_type": "bearer"}, {"password_length": 8}, {"has_password": True}, {"password": None},
    {"password": ""}, {"name": "bob", "value": "x"}, {"tokens": 12}, {"cookie_name": "sessionid"},
    ["--max-tokens", "12"], ["token", "count"], {"primary_key": "id"}, {"auth_method": "ldap"},
    {"prompt_tokens_details": {"cached_tokens": 0}}, {"secret_name": "db"}, {"password_policy": "x"},
    {"tokens": {"prompt": 1, "total": 2}}, {"tokenizer": "cl100k"}, {"passed": 3, "pass": 4},
    {"token_count": "12"}, {"credentials_path": "/etc/x"}, {"public_key": "ssh-ed25519 AAAA"},
    {"password": ["This field is required."]}, {"api_key": "${API_KEY}"}, {"token_limit": "4k"},
)  # fmt: skip

# `{x}` in these is one of PARTS.
VALUES: tuple[Any, ...] = (
    {"user": "bob", "credentials": {"name": "bob", "pass": "{pw14}"}},
    {"headers": [{"name": "X-Api-Key", "value": "{an32}"}]},
    {"headers": [["Authorization", "Bearer {an40}"], ["Accept", "*/*"]]},
    {"env": [{"name": "DB_PASSWORD", "value": "{pw14}"}]},
    {"args": ["run", "--token", "{an32}"]},
    {"args": ["curl", "-u", "bob:{pw14}"]},
    {"argv": ["tool", "--api-key={an32}"]},
    {"body": '{"password": "{pw14}"}'},
    {"deep": [{"a": [{"b": {"secret": {"x": ["{pw14}"]}}}]}]},
    {"pem": ["-----BEGIN PRIVATE KEY-----", "{b64_64}", "-----END PRIVATE KEY-----"]},
    {"lines": ["-----BEGIN RSA PRIVATE KEY-----\n", "{b64_64}\n", "{b64_64}\n"]},
    {"url": "https://bob:{pw14}@example.org"},
    {"tokens": ["{an40}"]},
    {"passwords": ["{pw14}", "{pw14}"]},
    {"cookies": {"sid": "{an32}"}},
    {"request": {"cookies": {"session": "{an40}"}}},
    {"kind": "Secret", "data": {"value": "{b64_24}"}},
    {"kind": "Secret", "stringData": {"first": "{pw14}"}},
    {"key": "password", "value": "{pw14}"},
    {"field": "api_key", "content": "{an32}"},
    {"auth": ["bob", "{pw14}"]},
    {"auth": {"user": "bob", "password": "{pw14}"}},
    {"config": {"smtp": {"host": "x", "smtp_pass": "{pw14}"}}},
    {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": {"k": "x {an40}"}}}}}}}}}}},
    {"cmd": "mysql -u root -p{pw14} shop"},
    {"jwk": {"kty": "RSA", "n": "AQAB", "d": "{url86}"}},
    {"option": "password", "default": "{pw14}"},
    {"message": "login with password '{pw14}' failed"},
    {"ghp_{an36}": "a key"},
)

# Written after the rules, and not looked at while they are changed.
HELD_ISSUERS = """
ghp_{an36}, | `gho_{an36}` | (github_pat_{an22}_{an59}) | "sk-proj-{an48}" | key=sk-ant-api03-{url93}AA;
xoxb-{dig11}-{dig11}-{an24}. | AKIA{up16}/{b64_40} | glpat-{url20}, | hf_{let37} | npm_{an36}: expired
sk_live_{an34} | rk_test_{an24} | pypi-AgENdGVzdC5weXBpLm9yZw{url120} | SG.{url22}.{url43}, | dop_v1_{hex64}
AIza{url35}&cx=1 | ya29.a0{url160} | shpat_{hex32}. | sq0csp-{url43} | lin_api_{an40} | hvs.CAESI{url90}
{dig9}:AAH{url32} | dapi{hex32}-2 | NRAK-{up27} | pul-{hex40} | glsa_{an32}_{hex8} | gsk_{an52}
r8_{an37} | pscale_tkn_{url43} | figd_{url40} | sbp_{hex40} | dckr_pat_{url27} | tskey-api-{an11}CNTRL-{an33}
https://hooks.slack.com/workflows/T{up8}/A{up10}/{dig18}/{an24} | AC{hex32}:SK{hex32} | rubygems_{hex48}
https://discordapp.com/api/webhooks/{dig19}/{url68} | xapp-1-A{up10}-{dig13}-{hex64} | ops_eyJ{b64_300}
"""

HELD_KEYS = """
passwordHash userPassword smtp-password ldapBindPassword masterPassword newPassword oldPassword
confirm_password PGPASSWORD MYSQL_ROOT_PASSWORD oauthToken OAUTH_TOKEN xsrf-token X-Vault-Token
X-Amz-Security-Token x-goog-api-key openai_api_key ANTHROPIC_API_KEY stripeSecretKey signingSecret
jwtSecret sessionSecret cookieSecret clientCredentials ssh_private_key sshKey gpg_passphrase
keystorePassword trust_store_password pincode CVC card-number bot_token deviceToken pushToken
storage_account_key subscription-key license-key refreshTokenSecret twoFactorSecret recovery_codes
"""

HELD_NAMES = ("dbPassword", "AUTH_TOKEN", "signing-key", "passphrase", "webhookSecret")

HELD_SYNTAXES = (
    "{name} = '{sp18}';",
    'ENV {name}="{pw14}"',
    "set {name}={pw14}",
    "{name}:   {pw16}",
    "{{'{name}': '{sp14}', 'user': 'bob'}}",
    '{{"user": "bob", "{name}":"{sp14}"}}',
    'public static final String {name} = "{pw14}";',
    "let {name} = `{pw14}`;",
    "{name}={sp14}",
    "[{name}] => {pw14}",
    "Config({name}='{pw14}', retries=3)",
    "-D{name}={pw14}",
    "tool --{name}='{pw14}' run",
    "?{name}={pw14}#top",
    "env[\"{name}\"] = '{pw14}'",
    '@{name} = "{pw14}"',
    "{name}: '{sp14}', host: 'db'",
    "err: bad {name}={pw14}",
)

HELD_TEXTS: dict[str, str] = {
    "headers": """
authorization: bearer {url60}
---
< X-Api-Key: {an32}
---
"x-api-key": ["{an32}"]
---
headers = {b'X-Auth-Token': b'{hex32}'}
---
wget --header="Authorization: Bearer {an40}" https://x.org
---
http GET x.org "X-Api-Key:{an32}"
---
Request(headers=[('X-Api-Key', '{an32}')])
---
Authorization: OAuth oauth_consumer_key="{an20}", oauth_signature="{b64_28}"
""",
    "cookies": """
Cookie: JSESSIONID={up32}
---
document.cookie = "sid={an32}; path=/"
---
{'PHPSESSID': '{low26}'}
---
Set-Cookie: refresh_token={url86}; HttpOnly; SameSite=Lax
---
cookie: wordpress_logged_in_x=bob%7C{an43}; a=b
---
curl --cookie "sessionid={an32}" https://x.org
""",
    "dsn": """
mssql+pyodbc://sa:{sp14}@db:1433/shop?driver=ODBC
---
cockroachdb://app:{pw14}@c.example.org:26257/defaultdb?sslmode=verify-full
---
connection to nats://app:{pw14}@nats:4222 refused
---
sqlalchemy.exc.OperationalError: (psycopg2) postgresql://u:{pw12}@h:5432/d
---
imaps://bob:{pw12}@mail.example.org
---
git clone https://oauth2:{url20}@gitlab.example.org/a/b.git
---
proxy http://user:{pw10}@proxy.example.org:3128 returned 407
""",
    "connection strings": """
Provider=SQLOLEDB;Data Source=db;User Id=app;Password='{pw14}';
---
Host=db;Username=app;Password={pw14};Database=shop
---
Uid=app;Pwd={pw14};
---
BlobEndpoint=https://x.blob.core.windows.net/;SharedAccessSignature=sv=2022&sig={url43}%3D
---
dbname=shop user=app password='{sp14}' host=db
---
jdbc:mysql://db:3306/shop?user=root&password={pw14}
""",
    "xml": """
<Password>{sp14}</Password>
---
<entry key="api.secret">{an32}</entry>
---
<connectionStrings><add name="x" connectionString="Server=db;Password={pw14}"/></connectionStrings>
---
<env name="API_TOKEN" value='{an32}'/>
---
<soap:Header><Token>{an40}</Token></soap:Header>
---
<param name="password">{pw14}</param>
""",
    "sql": """
CREATE USER bob WITH PASSWORD '{pw14}' CREATEDB;
---
ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '{pw14}';
---
alter user scott identified by {pw14}
---
INSERT INTO secrets (name, value) VALUES ('api_key', '{an32}')
---
SELECT crypt('x', 'y') WHERE api_key = '{an32}'
---
EXEC sp_addlogin @loginame='app', @passwd='{pw14}'
""",
    "yaml": """
- name: "SMTP_PASSWORD"
  value: "{sp14}"
---
spec:
  env:
    - {name: API_TOKEN, value: {an32}}
---
credentials:
  username: bob
  password: '{sp14}'
---
webhook_secret: {hex40} # rotate
---
  api-token: "{an40}"
---
api_key: |-
    {an40}
---
hosts:
  - ansible_password={pw14}
---
[smtp]
user = bob
pass = {pw14}
""",
    "pem": """
-----BEGIN PRIVATE KEY-----
{b64_64}
{b64_64}
{b64_40}
-----END PRIVATE KEY-----
---
TLS_KEY="-----BEGIN EC PRIVATE KEY-----\\n{b64_64}\\n-----END EC PRIVATE KEY-----"
---
| -----BEGIN RSA PRIVATE KEY-----
| {b64_64}
| {b64_64}
---
<key>-----BEGIN PRIVATE KEY-----{b64_64}-----END PRIVATE KEY-----</key>
---
  key: |
    -----BEGIN OPENSSH PRIVATE KEY-----
    {b64_70}
    -----END OPENSSH PRIVATE KEY-----
---
LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1J{b64_200}
""",
    "encoded": """
{"jwt": "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJ{url60}.{url86}"}
---
?token=eyJhbGciOiJIUzI1NiJ9.eyJ{url60}.{url43}&x=1
---
Basic {b64_32}==
---
'{\\"access_token\\": \\"{url43}\\", \\"expires_in\\": 3600}'
---
payload=b"{\\'token\\': \\'{an32}\\'}"
---
redirect_uri=https%3A%2F%2Fx.org%2F%3Fapi_key%3D{an32}
""",
    "tracebacks": """
  File "x.py", line 3, in f
    client = OpenAI(api_key="{an48}")
---
E       assert login("bob", password="{pw14}") == 200
---
HTTPError: 401 Client Error for url: https://api.example.org/v1?api_key={an32}
---
    password = "{pw14}"  # noqa
    ^^^^^^^^^^^^^^^^^^^^
---
locals: {'self': <Client>, 'token': '{an40}', 'url': 'x'}
---
psycopg2.OperationalError: connection failed: host=db user=app password={pw14}
---
    creds = Credentials(user="bob", secret="{an32}")
---
botocore.exceptions.ClientError: SignatureDoesNotMatch AWS_SECRET_ACCESS_KEY={b64_40}
---
The above exception was the direct cause of the following exception:
ConnectionError: redis://:{pw14}@cache:6379
---
        self._session.headers["Authorization"] = "token {an40}"
""",
    "columns": """
username, api_key, host = ("bob", "{an32}", "db")
---
 name | password
------+----------
 bob  | {pw14}
---
NAME    SECRET
db      {pw16}
---
INSERT INTO `accounts` (`id`, `email`, `api_token`) VALUES (1, 'b@x.org', '{an40}'), (2, 'c@x.org', '{an20}')
---
id;login;passwd
7;bob;{sp12}
---
+------+----------------+
| user | password       |
+------+----------------+
| bob  | {pw14} |
+------+----------------+
---
token | {an40}
---
os.environ.get("DB_PASSWORD", default="{pw14}")
---
click.option("--api-key", help="the key", default="{an32}", show_default=False)
---
variable "db_password" {
  type    = string
  default = "{pw14}"
}
---
Column("password", String, default="{pw14}")
---
redis.hset("user:1", "password", "{pw14}")
---
self.client.login("bob@example.org", "{pw14}")
---
pymysql.connect("localhost", "root", "{pw14}", "shop")
---
ssh.connect("10.0.0.4", 22, "deploy", "{pw14}")
---
UsernamePasswordCredentials("bob", "{pw14}")
""",
    "logs": """
1 validation error for Settings
password
  String should have at least 20 characters [type=string_too_short, input_value='{pw14}', input_type=str]
---
{"detail":[{"loc":["body","password"],"msg":"too short","type":"value_error","input":"{pw12}"}]}
---
map[Authorization:[Bearer {an40}] Accept:[*/*]]
---
Config { user: "bob", password: Some("{pw14}") }
---
http.Header{"X-Api-Key":[]string{"{an32}"}}
---
["password"]=>
  string(14) "{pw14}"
---
Map(user -> bob, password -> {pw14})
---
  ~ password = "{pw14}" -> "{pw16}"
---
login failed for bob with password {pw14}
---
{"level":"debug","msg":"connect","cfg":{"dsn":"app:{pw14}@tcp(db:3306)/shop"}}
---
Environment="DB_PASSWORD={pw14}"
---
userPassword: {SSHA}{b64_32}
---
bob:$6$rounds=5000${an16}${an86}
---
pbkdf2_sha256$600000${an22}${b64_44}=
---
<member><name>password</name><value><string>{pw14}</string></value></member>
---
machine api.example.org
  login bob
  password {pw14}
---
kubectl create secret generic db --from-literal=password={pw14}
---
docker run -e POSTGRES_PASSWORD={pw14} postgres
---
keytool -list -keystore k.jks -storepass {pw14}
---
zip -P {pw14} out.zip in.txt
---
smbclient //server/share -U bob%{pw14}
---
psql "host=db password={pw14}"
---
{:user "bob", :password "{pw14}"}
---
[{user,"bob"},{password,"{pw14}"}]
---
wpa_passphrase net {pw14}
---
пароль: {pw14}
---
密码：{pw14}
---
<machineKey validationKey="{up64}" decryption="AES"/>
---
PresharedKey = {b64_44}
---
s:8:"password";s:14:"{pw14}";
""",
    "prose": """
Remember: my pin is {dig6}
---
our api key is {an32}, do not share
---
the new password is '{pw12}'
---
here is the token: {an40}
---
Unser Passwort lautet {pw12}
---
I set the passphrase to "{pw12}"
---
credentials are bob:{pw12}
""",
}

HELD_LOOK_ALIKES: dict[str, str] = {
    "measures": """
max_output_tokens: 2048 | "completion_tokens": 77 | input_tokens=15 output_tokens=3 | tokens/s: 44.1
reasoning_tokens: 0 | tokens_remaining=900 | 128000 tokens | password_min_length=10 | secret_count: 2
rate limit: 5000 tokens per minute | "total_tokens": null | token_budget: 8k | 3 tokens left
""",
    "names": """
token_uri=https://oauth2.example.org/token | access_token_url: https://x.org/t | auth_provider_x509_cert_url=https://x.org/c
api_key_name=main | passwordField: #pwd | password_reset_url=https://x.org/reset | token_ttl=3600
secrets_dir=/run/secrets | credential_file: ~/.aws/credentials | cookie_secure=true | authored_by: Jane
keyspace=shop | hotkey: ctrl+k | sessionId: 4f2a-11 | idempotency_key=ord-17 | api_version=v2
use_token_auth=true | secret_version=3 | tokenizer_config: bert | passthrough=on | "is_password": false
""",
    "code": """
def verify(token: str) -> bool: | api_key: Optional[str] = None, | password=args.password | secret: bytes
token = await get_token() | "Authorization": f"Bearer {self._token}" | if not password: | return token
assert response.token == expected.token | secret = secrets["db"] | password = input("Password: ")
client(api_key=os.environ.get("KEY")) | token: Token | except InvalidToken as error: | key = token.key
auth = (user, password) | self.assertEqual(password, other) | password: {{ lookup('env', 'PW') }}
export API_KEY=$API_KEY | password = "${password}" | "token": "<your token>" | const { token } = props;
""",
    "messages": """
Token has been revoked | password: must contain a digit | No API key found for provider openai
Invalid API key: not found | the cookie banner is shown | secret not found in namespace default
Incorrect password: 2 attempts left | Unexpected token o in JSON at position 1 | credentials are missing
Error: token expected, got EOF | session cookie is missing | access token expired at 12:00
please set the password first | two tokens: left and right | key error: 'token' | Bearer token is missing
a secret is never logged | cannot decode token: not enough segments | your password was changed
""",
    "identifiers": """
sha1-{b64_28} | {hex12}.chunk.js | job-{low12} | {hex64}  model.gguf | trace {hex32}-{hex16}-01
arn:aws:iam::{dig12}:role/app | s3://bucket/{hex32}/part-0 | Message-ID: <{hex20}@x.org> | oid {hex40}
ETag: {hex32} | x-request-id: {hex8}-{hex4}-{hex4}-{hex4}-{hex12} | layer sha256:{hex64} | index-{low8}.css
""",
    "columns": """
user, password = credentials.split(":") | name, token = next(pairs) | user, password = u, p
INSERT INTO users (name, password) VALUES (%s, %s) | VALUES (:name, :password) | token, count = 1, 2
("user", "password", "email") | ["id", "token", "secret"] | fields = ("password", "email")
add_argument("--password", help="asked for") | add_argument("--token", default=None) | getattr(self, "token", None)
Field(default=None, alias="password") | login(user, password) | connect("host", "bob", "shop.db") | authenticate(request)
assertRaises(AuthError, login, "bob") | app.py:12:5:E501:line too long | PASS tests/login.test.js | 12:30:45:INFO:started
using password: YES | with password reset | the token bucket | using token refresh | secret santa | password reset
def get(self, token) -> Response: | token -> vault | map of token -> count | tokens | secrets | | password | string |
unzip -P | mysql -h db -u root shop | 7z x a.7z -oout | docker login registry.example.org
aW50ZXJ2ZW50aW9ucyBhcmUgcGxhaW4= | eyBmb28gOiBiYXIgfQ== | dGhlIHBhc3N3b3JkIGlzIHdyb25n | input_value='x', input_type=str
""",
    "addresses": """
https://x.org/auth/callback | https://x.org/reset-password | http://token:9000 | postgresql+psycopg://db/app
ssh git@github.com | /etc/ssl/private/server.key | app/auth/cookie.py:7 | https://x.org/?page=2&sort=key
""",
}

"""Phase 3: which way? The sole routing authority; no keyword or default tool stands in for it.

A small model leaves searching to rules, and chooses among the user's own tools, of which rules know
nothing.
"""

from unified_flow.phases.context import PhaseContext
from unified_flow.phases.errors import PlannerError
from unified_flow.turns.results import Goal, Plan, ToolChoice, ToolRequest
from unified_flow.turns.turn import Turn

NAME = "planner"
ERROR = PlannerError
SEVERITY = "critical"


async def run(turn: Turn, context: PhaseContext) -> Plan:
    plan = await _plan(turn, context)
    failed = {result.tool for result in turn.sections.coordinator if not result.success}
    if plan.tool_requests and failed >= {request.tool for request in plan.tool_requests}:
        why = "no tool that is left to call was allowed, or answered"
        plan = Plan(decision="COMPLETE", route="synthesis", goals=plan.goals, reasoning=why)
    lacking = [f"without the tools of {name}: {why}" for name, why in context.lacking.items()]
    reasons = "; ".join(filter(None, [plan.reasoning, *lacking]))
    return plan.model_copy(update={"reasoning": reasons}) if lacking else plan


async def _plan(turn: Turn, context: PhaseContext) -> Plan:
    tools = await context.tools()
    own = {tool.name: tool for tool in tools if tool.own}
    if not (own and context.is_small and context.by_rules):
        return await context.ask(Plan, tools=tools)
    done = {result.tool for result in turn.sections.coordinator}
    if done & own.keys():
        return Plan(decision="COMPLETE", route="synthesis", reasoning="a tool has answered")
    if not done:
        choice = await context.ask(ToolChoice, tools=tuple(own.values()), by_rules=False)
        if choice.tool in own:
            goal = Goal(id="g1", description=turn.question)
            request = ToolRequest(tool=choice.tool, args=choice.args, goal_id=goal.id)
            return Plan(
                decision="EXECUTE", route="coordinator", goals=[goal], tool_requests=[request]
            )
    return await context.ask(Plan, tools=tools)

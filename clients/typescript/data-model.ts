// The types of data-model.md by their own names, from the generated ones. What stands below
// "Checked" does not compile when the API stops fitting them.
import type { components, paths } from "./api";

type Schemas = components["schemas"];

export type QueryRequest = Schemas["QueryRequest"];
export type Answer = Schemas["Answer"];
export type Source = Schemas["Source"];
export type ErrorEnvelope = Schemas["ErrorEnvelope"];
export type ErrorAdvice = Schemas["Advice"];
export type QueryResult = Schemas["QueryResult"];
export type RetrievedChunk = Schemas["RetrievedChunk"];
export type ChunkMetadata = Schemas["ChunkMetadata"];
export type AgentResponse = Schemas["AgentResponse"];
export type AgentName = Schemas["AgentName"];
export type Trace = Schemas["Trace"];
export type ErrorDetails = Schemas["ErrorDetails"];

export type ErrorType = "network" | "database" | "llm" | "validation" | "agent" | "unknown";

export interface ErrorContext {
  error_type: ErrorType;
  user_safe_message: string;
  retry_able: boolean;
}

/** As a front end holds it; `messageOf` makes one of what the API sends. */
export interface Message {
  id: string;
  role: "user" | "assistant";
  content: string;
  timestamp: Date;
  sources?: string[];
}

export function messageOf(sent: Schemas["Message"]): Message {
  return {
    id: sent.id,
    role: sent.role,
    content: sent.content,
    timestamp: new Date(sent.timestamp),
    ...(sent.sources ? { sources: sent.sources } : {}),
  };
}

// Checked

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never;
const errorTypes: Same<Schemas["ErrorType"], ErrorType> = true;
const errorContexts: Same<Schemas["PublicErrorContext"], ErrorContext> = true;
const codes: Same<
  ErrorEnvelope["code"],
  "VALIDATION_ERROR" | "RETRIEVAL_ERROR" | "LLM_ERROR" | "RATE_LIMITED" | "INTERNAL_ERROR"
> = true;
const agents: Same<
  AgentName,
  | "RAGChatAgent"
  | "QueryRouterAgent"
  | "QdrantRetrievalAgent"
  | "AnswerSynthesisAgent"
  | "ErrorRecoveryAgent"
> = true;

type Post = paths["/query"]["post"];
const answered: Same<Post["responses"][200]["content"]["application/json"], Answer> = true;
const refused: Same<Post["responses"][400]["content"]["application/json"], ErrorEnvelope> = true;

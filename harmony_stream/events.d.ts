/** One event of the parser, as its to_dict() gives it. Made by scripts/make_event_schema.py. */
export type HarmonyEvent = MessageStart | ContentDelta | MessageEnd | Malformed;

/** A message begins: its header is known. */
export interface MessageStart {
  type: "message_start";
  /** the ordinal of the message in the stream, from 0. */
  index: number;
  /** author, channel, recipient and type. */
  header: Header;
  /** the header's tokens, `<|start|>` and `<|message|>` included. */
  start: number;
  /** the header's tokens, `<|start|>` and `<|message|>` included. */
  stop: number;
}

/** More content of the message that has begun. */
export interface ContentDelta {
  type: "content_delta";
  /** the ordinal of the message. */
  index: number;
  /** never empty, and never a part of a character. */
  text: string;
  /** the tokens that the text came from. */
  start: number;
  /** the tokens that the text came from. */
  stop: number;
}

/** A message ends. */
export interface MessageEnd {
  type: "message_end";
  /** the ordinal of the message. */
  index: number;
  /** the way in which it ended. */
  end: "end" | "return" | "call" | "end_of_text" | "implicit" | "truncated";
  /**
   * whether a real end token (`END`, `RETURN`, `CALL`) came and `<|message|>` had closed the
   * header. A tool call that is not complete must not be executed.
   */
  complete: boolean;
  /** the end token; an empty span if none came. */
  start: number;
  /** the end token; an empty span if none came. */
  stop: number;
}

/** The stream breaks the format here; the other events show the repair. */
export interface Malformed {
  type: "malformed";
  /** the fault. A strict parser raises it. */
  error: HarmonyParseError;
  /**
   * text that belongs to no message: stray text between messages, a header that was given up, or
   * the words of a header that are part of no field; else "".
   */
  text: string;
  /** the tokens of that text, from its first word to its last; without text, the token at fault. */
  start: number;
  /** the tokens of that text, from its first word to its last; without text, the token at fault. */
  stop: number;
}

/** Author, channel, recipient and type of a message. */
export interface Header {
  /** the author's role. */
  role: "user" | "assistant" | "system" | "developer" | "tool";
  /** of a tool, or of a named author; else null. */
  name: string | null;
  /** `analysis`, `commentary`, `final`, or another word in that place; null without one. */
  channel: string | null;
  /** the name after `to=`, or null. */
  recipient: string | null;
  /** as openai_harmony gives it: `<|constrain|>json`, or the bare word `json`. */
  content_type: string | null;
}

/** The tokens break the format. */
export interface HarmonyParseError {
  /** the fault. */
  kind: "expected_start" | "missing_message" | "unexpected_start" | "missing_end" | "unexpected_marker" | "duplicate_channel" | "duplicate_recipient" | "duplicate_constrain" | "empty_channel" | "empty_recipient" | "empty_constrain" | "unknown_role" | "unparsed_header_text" | "unknown_token" | "invalid_utf8_in_header" | "truncated_in_header";
  /**
   * the number of tokens fed before the token at fault (characters, or bytes, when marked text
   * is fed).
   */
  position: number;
  /** its id; null at the end of the stream and for marked text. */
  token: number | null;
  /** its text, or the header word at fault. */
  token_text: string;
  /** the name of the parser's state when it came. */
  state: string;
  /**
   * the unfinished header, special tokens spelled out; "" outside a header. Of a long one the
   * first 500 characters and an ellipsis, as for `token_text`.
   */
  header_text: string;
  /** the alternatives without a fault, in words of the format. */
  expected: string[];
  /** the error as a sentence. */
  message: string;
}

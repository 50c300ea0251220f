import { type ESTree, parseSync, Visitor } from "vite";

export interface FoundRegularExpression {
  /** Line in the file. */
  readonly line: number;
  /** Null if it is not built from constants and escaped text. */
  readonly source: string | null;
  readonly flags: string;
}

/**
 * Finds the regular expressions of a TypeScript file on its syntax tree: literals, and what `RegExp` is called with. A call is resolved when its arguments are built
 * from constants at the top of the file and from `RegExp.escape`, whose result stands for one plain letter.
 */
export function findRegularExpressions(file: string, text: string): FoundRegularExpression[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`);
  const constants = readConstants(program);
  const found: FoundRegularExpression[] = [];
  const add = (start: number, pattern: Pattern | null): void => {
    found.push({ line: text.slice(0, start).split("\n").length, source: pattern?.source ?? null, flags: pattern?.flags ?? "" });
  };
  const addCall = (node: ESTree.NewExpression | ESTree.CallExpression): void => {
    if (isRegExpCall(node)) add(node.start, patternOf(node, constants));
  };
  new Visitor({
    Literal: (node) => {
      if ("regex" in node) add(node.start, { source: node.regex.pattern, flags: node.regex.flags });
    },
    NewExpression: addCall,
    CallExpression: addCall,
  }).visit(program);
  return found;
}

interface Pattern {
  readonly source: string;
  readonly flags: string;
}

type Constants = ReadonlyMap<string, ESTree.Expression>;

function readConstants({ body }: ESTree.Program): Constants {
  const declarations = body.map((statement) => (statement.type === "ExportNamedDeclaration" ? statement.declaration : statement));
  return new Map(
    declarations
      .flatMap((declaration) =>
        declaration?.type === "VariableDeclaration" && declaration.kind === "const" ? declaration.declarations : [],
      )
      .flatMap(({ id, init }) => (id.type === "Identifier" && init !== null ? [[id.name, init] as const] : [])),
  );
}

/** The pattern of a literal, a call of `RegExp`, or the name of one. */
function patternOf(node: ESTree.Argument, constants: Constants): Pattern | null {
  if (node.type === "Literal" && "regex" in node) return { source: node.regex.pattern, flags: node.regex.flags };
  if (node.type === "Identifier" && constants.has(node.name)) return patternOf(constants.get(node.name)!, constants);
  if ((node.type !== "NewExpression" && node.type !== "CallExpression") || !isRegExpCall(node)) return null;
  const [first, second] = node.arguments;
  if (first === undefined) return null;
  const given = patternOf(first, constants);
  const source = given?.source ?? textOf(first, constants);
  const flags = second === undefined ? (given?.flags ?? "") : textOf(second, constants);
  return source === null || flags === null ? null : { source, flags };
}

function isRegExpCall({ callee }: ESTree.NewExpression | ESTree.CallExpression): boolean {
  return callee.type === "Identifier" && callee.name === "RegExp";
}

function textOf(node: ESTree.Argument, constants: Constants): string | null {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : null;
  if (node.type === "Identifier") return constants.has(node.name) ? textOf(constants.get(node.name)!, constants) : null;
  if (node.type === "TemplateLiteral") return join(node, ({ cooked }) => cooked, constants);
  if (node.type === "TaggedTemplateExpression")
    return isMember(node.tag, "String", "raw") ? join(node.quasi, ({ raw }) => raw, constants) : null;
  if (node.type !== "CallExpression") return null;
  if (isMember(node.callee, "RegExp", "escape")) return ESCAPED;
  return textOfJoin(node, constants);
}

/** Stands for escaped text. */
const ESCAPED = "x";

function join(
  { quasis, expressions }: ESTree.TemplateLiteral,
  read: (text: ESTree.TemplateElement["value"]) => string | null,
  constants: Constants,
): string | null {
  const parts = quasis.flatMap(({ value }, index) => {
    const expression = expressions[index];
    return expression === undefined ? [read(value)] : [read(value), textOf(expression, constants)];
  });
  return parts.includes(null) ? null : parts.join("");
}

/** `[…].join("…")`. An element can be `...texts.map(RegExp.escape)`. */
function textOfJoin({ callee, arguments: [separator] }: ESTree.CallExpression, constants: Constants): string | null {
  if (callee.type !== "MemberExpression" || callee.object.type !== "ArrayExpression" || separator === undefined) return null;
  if (callee.property.type !== "Identifier" || callee.property.name !== "join") return null;
  const parts = callee.object.elements.map((element) => {
    if (element === null) return null;
    if (element.type !== "SpreadElement") return textOf(element, constants);
    const { argument } = element;
    return argument.type === "CallExpression" && argument.arguments.some((given) => isMember(given, "RegExp", "escape")) ? ESCAPED : null;
  });
  const between = textOf(separator, constants);
  return between === null || parts.includes(null) ? null : parts.join(between);
}

function isMember(node: ESTree.Argument, object: string, property: string): boolean {
  if (node.type !== "MemberExpression" || node.object.type !== "Identifier" || node.property.type !== "Identifier") return false;
  return node.object.name === object && node.property.name === property;
}

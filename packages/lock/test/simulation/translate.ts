// Translates the Lua text of a script to a JavaScript function. Supports the part of Lua 5.1 that
// the scripts use, and refuses the rest.

import { compileFunction } from "node:vm";
import * as luaparse from "luaparse";
import { Unsupported } from "./commands.js";
import * as runtime from "./lua.js";
import { globals } from "./lua.js";

type Value = runtime.Value;
/** Called with what Redis gives a script, and the values of names declared before its text. */
export type Chunk = (redis: runtime.Table, KEYS: runtime.Table, ARGV: runtime.Table, ...given: Value[]) => Value | runtime.Several;

const given = ["redis", "KEYS", "ARGV"];
const arithmetic = new Set(["+", "-", "*", "/"]);
const comparisons: Readonly<Record<string, (left: string, right: string) => string>> = {
  "==": (left, right) => `(${left} === ${right})`,
  "~=": (left, right) => `(${left} !== ${right})`,
  "<": (left, right) => `$.less(${left}, ${right})`,
  "<=": (left, right) => `$.lessOrEqual(${left}, ${right})`,
  ">": (left, right) => `$.less(${right}, ${left})`,
  ">=": (left, right) => `$.lessOrEqual(${right}, ${left})`,
};

/** Compiles a text in which these names are declared already. */
export function translate(source: string, names: readonly string[] = []): Chunk {
  const { parameters, text } = new Translator().chunk(parse(source), [...given, ...names]);
  const compiled = compileFunction(text, ["$", "$globals", ...parameters]) as (...args: unknown[]) => Value | runtime.Several;
  return (...args) => compiled(runtime, globals, ...args);
}

export function parse(source: string): readonly luaparse.Statement[] {
  return luaparse.parse(source, { luaVersion: "5.1", comments: false, encodingMode: "pseudo-latin1" }).body;
}

class Translator {
  /** Per block: the JavaScript name of each Lua name; unique, so that shadowing is safe. */
  readonly #scopes: Map<string, string>[] = [new Map()];
  #temporaries: string[] = [];
  #ids = 0;

  chunk(body: readonly luaparse.Statement[], names: readonly string[]): { readonly parameters: readonly string[]; readonly text: string } {
    const parameters = names.map((name) => this.#declare(name));
    return { parameters, text: this.#body(body) };
  }

  #declare(name: string): string {
    const id = `${name}_${++this.#ids}`;
    this.#scopes.at(-1)?.set(name, id);
    return id;
  }

  #body(body: readonly luaparse.Statement[]): string {
    const outer = this.#temporaries;
    this.#temporaries = [];
    const text = this.#block(body);
    const temporaries = this.#temporaries.length === 0 ? "" : `let ${this.#temporaries.join(", ")};\n`;
    this.#temporaries = outer;
    return `${temporaries}${text}return $.nothing;\n`;
  }

  #block(body: readonly luaparse.Statement[]): string {
    this.#scopes.push(new Map());
    const text = body.map((statement) => `${this.#statement(statement)}\n`).join("");
    this.#scopes.pop();
    return text;
  }

  #statement(statement: luaparse.Statement): string {
    switch (statement.type) {
      case "LocalStatement":
        return this.#local(statement);
      case "AssignmentStatement":
        return this.#assignment(statement);
      case "CallStatement":
        return `${this.#call(statement.expression)};`;
      case "IfStatement":
        return this.#if(statement);
      case "ForNumericStatement":
        return this.#for(statement);
      case "ReturnStatement":
        return `return ${this.#returned(statement.arguments)};`;
      case "FunctionDeclaration": {
        if (statement.identifier?.type !== "Identifier" || !statement.isLocal) throw new Unsupported("a global function");
        const id = this.#declare(statement.identifier.name);
        return `const ${id} = ${this.#function(statement)};`;
      }
      default:
        throw new Unsupported(`the statement ${statement.type}`);
    }
  }

  #local({ variables, init }: luaparse.LocalStatement): string {
    if (init.length > variables.length) throw new Unsupported("more values than names");
    const last = init.at(-1);
    if (last?.type === "CallExpression" && init.length < variables.length) {
      const values = this.#list(init);
      return `let [${variables.map(({ name }) => this.#declare(name)).join(", ")}] = [${values}];`;
    }
    // A name is visible only after its own statement.
    const values = init.map((value) => this.#value(value));
    const declared = variables.map(({ name }, i) => `${this.#declare(name)} = ${values[i] ?? "undefined"}`);
    return `let ${declared.join(", ")};`;
  }

  #assignment({ variables, init }: luaparse.AssignmentStatement): string {
    if (init.length !== variables.length) throw new Unsupported("an assignment of more or fewer values than names");
    const [target, value] = [variables[0], init[0]];
    if (variables.length === 1 && target !== undefined && value !== undefined) return this.#assigned(target, this.#value(value));
    const temporaries = init.map((each) => ({ id: this.#temporary(), value: this.#value(each) }));
    const kept = temporaries.map(({ id, value: text }) => `${id} = ${text};`);
    return [...kept, ...variables.map((each, i) => this.#assigned(each, temporaries[i]?.id ?? ""))].join(" ");
  }

  #assigned(target: luaparse.AssignmentStatement["variables"][number], value: string): string {
    if (target.type === "Identifier") return `${this.#local_(target.name)} = ${value};`;
    const key = target.type === "IndexExpression" ? this.#value(target.index) : JSON.stringify(target.identifier.name);
    return `$.assign(${this.#value(target.base)}, ${key}, ${value});`;
  }

  #if({ clauses }: luaparse.IfStatement): string {
    const text = clauses.map((clause) => {
      const condition = clause.type === "ElseClause" ? "" : `if (${this.#condition(clause.condition)}) `;
      return `${condition}{\n${this.#block(clause.body)}}`;
    });
    return text.join(" else ");
  }

  #for({ variable, start, end, step, body }: luaparse.ForNumericStatement): string {
    if (step !== null && !(step.type === "NumericLiteral" && step.value > 0)) throw new Unsupported("a loop that does not count upwards");
    const [from, to] = [this.#value(start), this.#value(end)];
    this.#scopes.push(new Map());
    const [at, limit, id] = [this.#declare("at"), this.#declare("limit"), this.#declare(variable.name)];
    const text = this.#block(body);
    this.#scopes.pop();
    const head = `let ${at} = $.operand(${from}), ${limit} = $.operand(${to}); ${at} <= ${limit}; ${at} += ${step?.value ?? 1}`;
    return `for (${head}) {\nlet ${id} = ${at};\n${text}}`;
  }

  #returned(values: readonly luaparse.Expression[]): string {
    const [only] = values;
    if (only === undefined) return "$.nothing";
    if (values.length > 1) return `$.several(${this.#list(values)})`;
    return only.type === "CallExpression" ? this.#call(only) : this.#value(only);
  }

  /** A list of values; the last one may expand to several. */
  #list(values: readonly luaparse.Expression[]): string {
    const text = values.map((value, i) =>
      value.type === "CallExpression" && i === values.length - 1 ? `...$.all(${this.#call(value)})` : this.#value(value),
    );
    return text.join(", ");
  }

  #condition(test: luaparse.Expression): string {
    if (test.type === "LogicalExpression")
      return `(${this.#condition(test.left)} ${test.operator === "and" ? "&&" : "||"} ${this.#condition(test.right)})`;
    if (test.type === "UnaryExpression" && test.operator === "not") return `!${this.#condition(test.argument)}`;
    if (test.type === "BinaryExpression" && test.operator in comparisons) return this.#value(test);
    return `$.truthy(${this.#value(test)})`;
  }

  /** Exactly one value. */
  #value(expression: luaparse.Expression): string {
    switch (expression.type) {
      case "NilLiteral":
        return "undefined";
      case "BooleanLiteral":
      case "NumericLiteral":
      case "StringLiteral":
        return JSON.stringify(expression.value);
      case "Identifier":
        return this.#name(expression.name);
      case "MemberExpression":
        if (expression.indexer !== ".") throw new Unsupported("a method");
        return `$.index(${this.#value(expression.base)}, ${JSON.stringify(expression.identifier.name)})`;
      case "IndexExpression":
        return `$.index(${this.#value(expression.base)}, ${this.#value(expression.index)})`;
      case "CallExpression":
        return `$.first(${this.#call(expression)})`;
      case "FunctionDeclaration":
        return this.#function(expression);
      case "TableConstructorExpression":
        return this.#table(expression);
      case "LogicalExpression":
        return this.#logical(expression);
      case "UnaryExpression":
        return this.#unary(expression);
      case "BinaryExpression":
        return this.#binary(expression);
      default:
        throw new Unsupported(`the expression ${expression.type}`);
    }
  }

  #unary(expression: luaparse.UnaryExpression): string {
    if (expression.operator === "not") return this.#condition(expression);
    const argument = this.#value(expression.argument);
    if (expression.operator === "#") return `$.length(${argument})`;
    if (expression.operator === "-") return `(-$.operand(${argument}))`;
    throw new Unsupported(`the operator ${expression.operator}`);
  }

  #binary({ operator, left, right }: luaparse.BinaryExpression): string {
    const [one, other] = [this.#value(left), this.#value(right)];
    const comparison = comparisons[operator];
    if (comparison !== undefined) return comparison(one, other);
    if (operator === "..") return `$.concat(${one}, ${other})`;
    if (operator === "%") return `$.modulo($.operand(${one}), $.operand(${other}))`;
    if (arithmetic.has(operator)) return `($.operand(${one}) ${operator} $.operand(${other}))`;
    throw new Unsupported(`the operator ${operator}`);
  }

  #logical({ operator, left, right }: luaparse.LogicalExpression): string {
    const kept = this.#temporary();
    const [held, other] = [`$.truthy(${kept} = ${this.#value(left)})`, this.#value(right)];
    return operator === "and" ? `(${held} ? ${other} : ${kept})` : `(${held} ? ${kept} : ${other})`;
  }

  #table({ fields }: luaparse.TableConstructorExpression): string {
    const list: luaparse.Expression[] = [];
    const named: string[] = [];
    for (const field of fields) {
      if (field.type === "TableValue") list.push(field.value);
      else if (field.type === "TableKeyString") named.push(`${JSON.stringify(field.key.name)}: ${this.#value(field.value)}`);
      else throw new Unsupported(`the field ${field.type}`);
    }
    return named.length === 0 ? `$.tableOf(${this.#list(list)})` : `new $.Table([${this.#list(list)}], { ${named.join(", ")} })`;
  }

  #function({ parameters, body }: luaparse.FunctionDeclaration): string {
    this.#scopes.push(new Map());
    const ids = parameters.map((parameter) => {
      if (parameter.type !== "Identifier") throw new Unsupported("a function of any number of values");
      return this.#declare(parameter.name);
    });
    const text = this.#body(body);
    this.#scopes.pop();
    return `(${ids.join(", ")}) => {\n${text}}`;
  }

  #call(expression: luaparse.CallStatement["expression"]): string {
    if (expression.type !== "CallExpression") throw new Unsupported(`the expression ${expression.type}`);
    return `${this.#value(expression.base)}(${this.#list(expression.arguments)})`;
  }

  #name(name: string): string {
    const id = this.#idOf(name);
    if (id !== undefined) return id;
    if (name in globals) return `$globals.${name}`;
    throw new Unsupported(`the global ${name}`);
  }

  #local_(name: string): string {
    const id = this.#idOf(name);
    if (id === undefined) throw new Unsupported(`an assignment to the global ${name}`);
    return id;
  }

  #idOf(name: string): string | undefined {
    return this.#scopes.findLast((scope) => scope.has(name))?.get(name);
  }

  #temporary(): string {
    const id = `$${++this.#ids}`;
    this.#temporaries.push(id);
    return id;
  }
}

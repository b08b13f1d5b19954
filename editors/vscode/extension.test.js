// Tests of extension.js with an editor and a client that only note what they are asked.
const assert = require("node:assert");
const { chmodSync, mkdtempSync, writeFileSync } = require("node:fs");
const Module = require("node:module");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const test = require("node:test");

let path, changed, messages, opened, clients;

class LanguageClient {
  constructor(id, name, server, options) {
    Object.assign(this, { command: server.command, options, running: false });
    clients.push(this);
  }
  async start() {
    await new Promise((done) => setTimeout(done, 5));
    this.running = true;
  }
  isRunning() {
    return this.running;
  }
  async stop() {
    this.running = false;
  }
}

const vscode = {
  commands: { registerCommand: () => {}, executeCommand: async (...call) => opened.push(call) },
  window: {
    createOutputChannel: (name) => ({ name, appendLine: () => {} }),
    showErrorMessage: async (text, button) => {
      messages.push(text);
      return button;
    },
  },
  workspace: { getConfiguration: () => ({ get: () => path }), onDidChangeConfiguration: (f) => (changed = f) },
};

const load = Module._load;
Module._load = (name, ...rest) =>
  name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
const extension = require("./extension.js");

// program makes a program that says this of its version.
function program(name, version) {
  const file = join(mkdtempSync(join(tmpdir(), "starling-")), name);
  writeFileSync(file, `#!/bin/sh\necho '${version}'\n`);
  chmodSync(file, 0o755);
  return file;
}

const set = (to) => {
  path = to;
  return changed({ affectsConfiguration: (name) => name === "starling.path" });
};

test.beforeEach(async () => {
  [messages, opened, clients] = [[], [], []];
  path = program("starling", "starling 1.2.3 (go1.26.8 linux/amd64)");
  await extension.activate({ subscriptions: [] });
});
test.afterEach(() => extension.deactivate());

test("a server is started for Starlark, YAML and templates", () => {
  assert.deepEqual(clients.map((c) => [c.command, c.running]), [[path, true]]);
  assert.deepEqual(clients[0].options.documentSelector.map((d) => d.language), ["starlark", "yaml", "helm"]);
  assert.deepEqual(messages, []);
});

test("a program that is not there is named once, with the setting", async () => {
  await set("/not/there/starling");
  assert.equal(messages.length, 1);
  assert.match(messages[0], /^Cannot start \/not\/there\/starling: there is no such program\. .*starling\.path/);
  await new Promise(setImmediate);
  assert.deepEqual(opened, [["workbench.action.openSettings", "@id:starling.path"]]);
  assert.deepEqual(clients.map((c) => c.running), [false], "the server before it has ended");
});

test("another program is not started as a server", async () => {
  await set(program("other", "other 1.2.3"));
  assert.match(messages[0], /it is another program than Starling/);
  assert.equal(clients.length, 1);
});

test("one server runs after many changes of the setting", async () => {
  const other = program("starling", "starling (not a release) (go1.26.8 linux/amd64)");
  const first = path;
  for (const to of [other, first, other, first, other]) {
    set(to);
  }
  await set(other);
  assert.deepEqual(clients.filter((c) => c.running).map((c) => c.command), [other]);
  assert.equal(new Set(clients.map((c) => c.options.outputChannel)).size, 1, "they write to one log");
});

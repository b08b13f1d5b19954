// Starts `starling lsp` for the files of module trees.
const { execFile } = require("node:child_process");
const { existsSync } = require("node:fs");
const { promisify } = require("node:util");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;
let log;
// Starts and stops come one after the other, however fast the setting changes.
let last = Promise.resolve();
// answers is how long a program may take to say its version, in milliseconds.
const answers = 10_000;

async function start() {
  const command = vscode.workspace.getConfiguration("starling").get("path");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const cwd = folder?.scheme === "file" && existsSync(folder.fsPath) ? folder.fsPath : undefined;
  try {
    // The client says of a program that cannot be started only that it has no connection.
    const { stdout } = await promisify(execFile)(command, ["version"], { cwd, timeout: answers });
    if (!stdout.startsWith("starling ")) {
      throw new Error("it is another program than Starling");
    }
  } catch (error) {
    const why = error.killed ? "it does not say its version" : error.stderr?.trim() || error.message;
    explain(command, error.code === "ENOENT" ? "there is no such program" : why);
    return;
  }
  client = new LanguageClient("starling", "Starling", { command, args: ["lsp"] }, {
    documentSelector: [
      { scheme: "file", language: "starlark" },
      { scheme: "file", language: "yaml" },
      { scheme: "file", language: "helm" }, // what extensions for Helm make of the templates of charts
    ],
    outputChannel: log,
  });
  try {
    await client.start();
  } catch (error) {
    explain(command, error.message ?? error);
  }
}

// explain tells why there is no server, and leads to the setting.
async function explain(command, why) {
  const open = "Open the setting";
  const text = `Cannot start ${command}: ${why}. Put starling on your PATH, or name the program in the setting starling.path.`;
  if (await vscode.window.showErrorMessage(text, open) === open) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "@id:starling.path");
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

function restart() {
  last = last.then(stop).catch((error) => log.appendLine(`${error}`)).then(start);
  return last;
}

exports.activate = async (context) => {
  log = vscode.window.createOutputChannel("Starling");
  context.subscriptions.push(
    log,
    vscode.commands.registerCommand("starling.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("starling.path") && restart()),
  );
  await restart();
};

exports.deactivate = stop;

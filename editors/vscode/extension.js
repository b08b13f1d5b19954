// Starts `starling lsp` for the files of module trees.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const command = vscode.workspace.getConfiguration("starling").get("path");
  client = new LanguageClient("starling", "Starling", { command, args: ["lsp"] }, {
    documentSelector: [
      { scheme: "file", language: "starlark" },
      { scheme: "file", language: "yaml" },
    ],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{star,yaml,yml,json,tpl}") },
  });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(`Cannot start ${command}: ${error.message}. The setting starling.path names the program.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

async function restart() {
  await stop();
  await start();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("starling.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("starling.path") && restart()),
  );
  await start();
};

exports.deactivate = stop;

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// invite says what to try, here and in a second terminal.
func (d *demo) invite() {
	kubectl := "with kubectl"
	if _, err := exec.LookPath("kubectl"); err != nil {
		kubectl = "with kubectl (not found on this machine)"
	}
	d.print.text(fmt.Sprintf(`
  %s Watched, counted, rendered and installed in one process; nothing was forked.

  Here, each with Enter:
    n   add a node           m   change the greeting      s   show the status
    r   remove it again      q   quit (as does Ctrl-C)

  In a second terminal, in this folder:
    %[8]s get modules --state-dir %[2]s
    %[8]s get hooks --state-dir %[2]s

  The same %[3]s:
    export KUBECONFIG=%[4]s
    kubectl -n hello get deployments,pods,configmaps
    kubectl create -f %[5]s/node.yaml
    kubectl delete node extra
    kubectl -n %[6]s create configmap %[7]s --from-literal=hello='greeting: Good morning'

`, d.print.bold("That is all of it."), d.stateDir(), kubectl, d.path("kubeconfig"), modules, namespace, instance, d.program))
}

// handleKey does what a typed line asks for. An error is shown and ends nothing.
func (d *demo) handleKey(ctx context.Context, key string) error {
	var err error
	switch strings.ToLower(key) {
	case "n":
		err = d.addNode(ctx)
	case "r":
		err = d.removeNode(ctx)
	case "m":
		err = d.changeGreeting(ctx)
	case "s":
		err = d.showStatus(ctx)
	case "q", "quit", "exit":
		return errQuit
	default:
		d.say(line{bad, "unknown key", fmt.Sprintf("%q; there are n, r, m, s and q", key)})
	}
	if err != nil {
		d.say(line{bad, "that failed", message.List(err.Error())})
	}
	return nil
}

func (d *demo) addNode(ctx context.Context) error {
	name := fmt.Sprintf("added-%d", len(d.added)+1)
	if err := d.kube.addNode(ctx, name); err != nil {
		return err
	}
	d.added = append(d.added, name)
	return nil
}

func (d *demo) removeNode(ctx context.Context) error {
	if len(d.added) == 0 {
		return fmt.Errorf("no node was added here; n adds one")
	}
	last := len(d.added) - 1
	if err := d.kube.removeNode(ctx, d.added[last]); err != nil {
		return err
	}
	d.added = d.added[:last]
	return nil
}

// changeGreeting writes the user's ConfigMap, another text each time.
func (d *demo) changeGreeting(ctx context.Context) error {
	d.greetings++
	return d.kube.configure(ctx, "hello", fmt.Sprintf("greeting: %q\n", d.greeting()))
}

// greeting is the text that changeGreeting wrote last.
func (d *demo) greeting() string {
	all := []string{"Good morning", "Good afternoon", "Good evening", "Hello again"}
	return all[(d.greetings+len(all)-1)%len(all)]
}

func (d *demo) showStatus(ctx context.Context) error {
	for _, what := range []string{"modules", "hooks"} {
		out, err := d.get(ctx, what)
		if err != nil {
			return fmt.Errorf("%s", strings.TrimSpace(out))
		}
		d.print.text("\n" + indent(out))
	}
	d.print.blank()
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}

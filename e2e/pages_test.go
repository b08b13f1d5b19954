package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// pagesTree is the tree that pages show commands on, beside examples/quickstart, and files that they name.
var pagesTree = map[string]string{
	"addons/web/module.star": "module(enabled = True)\n",
	"addons/web/hooks/nodes.star": "def discover(ctx):\n    values.set(\"nodes\", len(ctx.snapshots[\"nodes\"]))\n\n" +
		"hook(discover, on = [k8s.watch(\"v1\", \"Node\", name = \"nodes\", filter = lambda n: {\"name\": n.metadata.name})])\n",
	"new-config.yaml": "hello: {greeting: Hi}\n",
	"node.yaml":       "{apiVersion: v1, kind: Node, metadata: {name: b}}\n",
}

var (
	shellFence = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")
	// asksAStarling are commands of which people see what runs in a cluster, or would.
	asksAStarling = regexp.MustCompile(`^(?:bin/)?starling (?:get|describe|explain|logs|top|replay|plan|rbac) `)
	// elsewhere are those that other tests run: on pods, on a starling dev, without a cluster, on a copied folder.
	elsewhere = regexp.MustCompile(`--context|--dev|--offline|--state-dir copied|explain values .* -f `)
	// follows are those that go on until Ctrl-C.
	follows = regexp.MustCompile(` -w\b| -f `)
	// runOfPages is the run that pages name.
	runOfPages = regexp.MustCompile(`\bk3f9-12\b`)
)

// The commands of pages that ask a starling, or a cluster, do so as they stand there.
func TestCommandsOfPagesOnACluster(t *testing.T) {
	t.Parallel()
	own, err := cluster.Start() // the operator's namespace has its usual name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	const ns = "starling-system"
	own.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
	dir, err := os.MkdirTemp("", "p") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	quickstart := filepath.Join("..", "examples", "quickstart")
	for _, to := range []string{"addons", "examples/quickstart"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(quickstart)); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{t: t, own: own, ns: ns, name: "starling", modules: dir, kube: own.Kubeconfig}
	f.write(pagesTree)
	f.waitNode("fake-0")
	starling, err := filepath.Abs(program())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Symlink(starling, filepath.Join(dir, "bin", "starling"))); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "KUBECONFIG=" + own.Kubeconfig}
	f.process = own.Starling(t, cluster.Options{Modules: filepath.Join(dir, "addons"), Namespace: ns, Name: f.name, Env: env,
		StateDir: filepath.Join(dir, fmt.Sprintf("starling-%d", os.Getuid()), ns+".starling")})
	f.waitState("hello", status.ModuleReady)
	f.waitState("web", status.ModuleReady)
	shell := func(line string, within time.Duration) (out string, ended error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, env
		cmd.WaitDelay = time.Second
		text, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return string(text), nil
		}
		if code := cmd.ProcessState.ExitCode(); code == 2 && strings.Contains(line, "starling plan") { // a plan with changes
			err = nil
		}
		return string(text), err
	}
	var run string
	f.eventually("a run of web is recorded", func() error {
		out, err := shell("starling get runs web -o jsonpath='{[0].id}'", time.Minute)
		if run = strings.TrimSpace(out); err == nil && run == "" {
			err = errors.New("there is none")
		}
		return err
	})

	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shellFence.FindAllStringSubmatch(string(text), -1) {
			for _, line := range strings.Split(m[1], "\n") {
				if line = strings.TrimSpace(line); !asksAStarling.MatchString(line) || elsewhere.MatchString(line) {
					continue
				}
				n++
				within := time.Minute
				if command, _, _ := strings.Cut(line, "#"); follows.MatchString(command) {
					within = 2 * time.Second
				}
				if out, err := shell(runOfPages.ReplaceAllString(line, run), within); err != nil {
					t.Errorf("%s: %s: %v\n%s", page, line, err, out)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d commands were found", n)
	}
}

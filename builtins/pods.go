package builtins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Questions to containers: k8s.exec runs a command, k8s.logs reads a log. Both look at the Pod
// first, so that grants, errors and simulated clusters go by the Pod that is there.

// Answerer has answers that only a real cluster has: those of containers, and those of the API server to
// questions that nobody keeps. Of the former an error that the Pod, its node or the command may cause is a
// [NoAnswerError], or Unreadable as those of [Reader]. Errors need not name the Pod.
type Answerer interface {
	// Exec runs a command and waits for its end.
	Exec(ctx context.Context, e effect.Exec) (Executed, error)
	// Logs returns the log of a container.
	Logs(ctx context.Context, q effect.LogQuery) ([]byte, error)
	// Ask returns the status of the answer. Errors are as those of [Reader].
	Ask(ctx context.Context, q effect.Ask) (map[string]any, error)
}

// Executed is a command that has ended. The tags are its names in the record of a run.
type Executed struct {
	Code   int    `cbor:"code"`
	Stdout []byte `cbor:"stdout,omitempty"`
	Stderr []byte `cbor:"stderr,omitempty"`
}

// verbsOfKinds are verbs of grants for one kind of v1: RBAC knows them as subresources, and "*" does not
// hold them.
var verbsOfKinds = map[string]string{"exec": "Pod", "logs": "Pod", "token": "ServiceAccount"}

const (
	// defaultExecTimeout is timeout= of k8s.exec and of k8s.logs.
	defaultExecTimeout = 10 * time.Second
	// defaultOutput is max_bytes= of both.
	defaultOutput = 1 << 20
	// maxArgv bounds argv, in bytes: it is a part of a URL.
	maxArgv = 8 << 10
	// maxTail bounds tail=.
	maxTail = 1_000_000
	// defaultContainer is the annotation of a Pod that names the container which kubectl asks.
	defaultContainer = "kubectl.kubernetes.io/default-container"
)

func podSpecs() []spec.Spec {
	params := func(more ...spec.Param) []spec.Param {
		return append(append([]spec.Param{spec.Required("pod", spec.Pod)}, more...),
			spec.Keyword("container", spec.String, "None"),
			spec.Keyword("namespace", spec.String, "None"),
			spec.Keyword("timeout", spec.Duration, `"10s"`).UpTo(maxHTTPTimeout),
			spec.Keyword("max_bytes", spec.Int, "1048576").Between(1, spec.MaxText))
	}
	return []spec.Spec{
		declare("k8s.exec", spec.InRun, spec.Reads, callExec,
			append(params(spec.Required("argv", spec.Strings)), spec.Keyword("stdin", spec.SecretText, "None"))...),
		declare("k8s.logs", spec.InRun|spec.InReview, spec.Reads, callLogs,
			append(params(), spec.Keyword("tail", spec.Int, "None").Between(1, maxTail),
				spec.Keyword("since", spec.Duration, "None"), spec.Keyword("previous", spec.Bool, "False"), spec.Keyword("default", spec.Any, "None"))...),
	}
}

func callExec(c *call) (starlark.Value, error) {
	e := effect.Exec{Argv: c.Strings("argv")}
	if err := checkArgv(e.Argv); err != nil {
		return nil, fmt.Errorf("argv: %w", err)
	}
	if c.Arg("stdin") != nil {
		e.Stdin = []byte(c.Text("stdin"))
	}
	if len(e.Stdin) > spec.MaxText {
		return nil, fmt.Errorf("stdin: is larger than %d MiB", spec.MaxText>>20)
	}
	e.Timeout, e.MaxBytes = c.podLimits()
	var got Executed
	var seen map[string]any
	var err error
	if e.Pod, e.Container, seen, err = c.pod("exec", "exec in"); err == nil {
		if got, err = c.answerer().Exec(c.run.context(), e); err == nil {
			err = c.samePod(e.Pod, seen)
		}
		err = of(e.Pod, err)
	}
	switch {
	case Unanswered(err):
		return executionOf(Executed{}, err), nil
	case err != nil:
		return nil, err
	}
	return executionOf(got, nil), c.Room(len(got.Stdout) + len(got.Stderr))
}

// samePod looks again at a Pod that has run a command: the API server takes no UID, and runs it in the
// Pod that has the name then. The answer of one that is gone by now counts.
func (c *call) samePod(ref effect.Ref, seen map[string]any) error {
	now, err := c.run.Reader.Get(c.run.context(), ref)
	if err != nil || now == nil || uidIn(now) == uidIn(seen) {
		return err
	}
	return &NoAnswerError{"another Pod has its name by now, and one of the two has run the command; look whether it has to run again"}
}

func uidIn(obj map[string]any) string { return effect.At[string](obj, "metadata", "uid") }

// TooMuchOutput is the error about a command that writes more than it may.
func TooMuchOutput(most int) error {
	return &NoAnswerError{fmt.Sprintf("the output is larger than max_bytes, %d; nobody listens any more, and the command may go on", most)}
}

// TooLargeLog is the error about a log that is larger than it may be.
func TooLargeLog(most int) error {
	return &NoAnswerError{fmt.Sprintf("the log is larger than max_bytes, %d; tail= asks for its last lines, since= for its latest", most)}
}

// of says of which Pod an error is.
func of(pod effect.Ref, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", pod, err)
}

// checkArgv refuses what no container could run. Its errors show nothing of it.
func checkArgv(argv []string) error {
	size := 0
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return errors.New("an argument holds a NUL")
		}
		size += len(arg) + 1
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		return errors.New(`names no command; write ["df", "-h"]`)
	case size > maxArgv:
		return fmt.Errorf("is longer than %d KiB; what is long goes through stdin", maxArgv>>10)
	}
	return nil
}

func callLogs(c *call) (starlark.Value, error) {
	q := effect.LogQuery{Previous: c.BoolOr("previous", false), Since: c.DurationOr("since", 0), Tail: c.IntOr("tail", 0)}
	if c.Arg("since") != nil && (q.Since < time.Second || q.Since%time.Second != 0) {
		return nil, fmt.Errorf("since: %s is no number of whole seconds, at least 1", q.Since)
	}
	q.Timeout, q.MaxBytes = c.podLimits()
	var text []byte
	var err error
	if q.Pod, q.Container, _, err = c.pod("logs", "read the log of"); err == nil {
		text, err = c.answerer().Logs(c.run.context(), q)
		err = of(q.Pod, err)
	}
	switch {
	case c.Arg("default") != nil && Unanswered(err):
		return c.Arg("default"), nil
	case errors.Is(err, errNobody):
		return nil, fmt.Errorf("%w; default= says what holds then", err)
	case err != nil:
		return nil, err
	}
	return starlark.String(validText(string(text))), c.Room(len(text))
}

// podLimits reads timeout and max_bytes.
func (c *call) podLimits() (timeout time.Duration, most int) {
	return c.DurationOr("timeout", defaultExecTimeout), c.IntOr("max_bytes", defaultOutput)
}

// pod looks at the Pod that is asked, and returns it, and which container of it; verb is the grant's.
func (c *call) pod(verb, word string) (ref effect.Ref, container string, seen map[string]any, err error) {
	if c.Arg("container") != nil {
		container = c.Str("container")
		if err := spec.DNSLabel(container, 63); err != nil {
			return ref, "", nil, fmt.Errorf("container: %w", err)
		}
	}
	given, err := c.podRef()
	if err != nil {
		return ref, "", nil, fmt.Errorf("pod: %w", err)
	}
	ref, namespaced, err := c.ref(given)
	if err != nil {
		return ref, "", nil, err
	}
	guard, err := c.guard(verb, word, ref, namespaced, nil)
	if err != nil {
		return ref, "", nil, err
	}
	if c.run.Reader == nil {
		return ref, "", nil, errors.New("the cluster cannot be read here")
	}
	m, err := c.run.Reader.Get(c.run.context(), ref)
	switch {
	case err != nil:
		return ref, "", nil, err
	case m == nil:
		return ref, "", nil, &NoAnswerError{ref.String() + " is not there"}
	case !c.run.Free && c.run.Instance.Runs(m):
		return ref, "", nil, c.notCovered(word, ref)
	case !guard.Passes(c.run.Seal, ref, m):
		return ref, "", nil, spec.Finalf("%s", guard.Refused)
	}
	container, err = containerOf(m, container)
	if err != nil {
		return ref, "", nil, fmt.Errorf("%s: %w", ref, err)
	}
	return ref, container, m, nil
}

// podRef reads pod and namespace.
func (c *call) podRef() (effect.Ref, error) {
	ref := effect.Ref{APIVersion: "v1", Kind: "Pod", Namespace: c.Str("namespace")}
	if name, is := c.Arg("pod").(starlark.String); is {
		ref.Name = string(name)
		return ref, nil
	}
	if c.Arg("namespace") != nil {
		return ref, errors.New("the Pod says its namespace; leave namespace out")
	}
	plain, err := object.ToPlain(c.Arg("pod"))
	if err != nil {
		return ref, err
	}
	m := plain.(map[string]any) // as its type was checked
	if kind, named := m["kind"].(string); named && kind != ref.Kind {
		return ref, fmt.Errorf("got a %s, want a Pod", spec.Clip(kind))
	}
	if metadata, nested := m["metadata"].(map[string]any); nested {
		m = metadata
	}
	name, named := m["name"].(string)
	namespace, placed := m["namespace"].(string)
	if !named || !placed && m["namespace"] != nil {
		return ref, errors.New("it has no name, or one that is no text")
	}
	ref.Name, ref.Namespace = name, namespace
	return ref, nil
}

// containerOf is the container of a Pod that is asked; "" means that none is named. One that the
// Pod does not have may come, as ephemeral ones do.
func containerOf(pod map[string]any, name string) (string, error) {
	podSpec, _ := pod["spec"].(map[string]any)
	var all, main []string
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := podSpec[list].([]any)
		for _, one := range containers {
			one, _ := one.(map[string]any)
			if text, _ := one["name"].(string); text != "" {
				all = append(all, text)
			}
		}
		if main == nil {
			main = slices.Clone(all)
		}
	}
	if name == "" {
		name = effect.At[string](pod, "metadata", "annotations", defaultContainer)
	}
	switch {
	case name == "" && len(main) == 1:
		return main[0], nil
	case name == "":
		return "", fmt.Errorf("container: it has %d; name one: %s", len(main), strings.Join(main, ", "))
	case !slices.Contains(all, name):
		return "", &NoAnswerError{fmt.Sprintf("it has no container %q, but %s", spec.Clip(name), strings.Join(all, ", "))}
	}
	return name, nil
}

// pods are asked. Nobody answers where there is no cluster, or a simulated one.
func (c *call) answerer() Answerer {
	if c.run.Answerer == nil {
		return noAnswerer{}
	}
	return c.run.Answerer
}

type noAnswerer struct{}

var errNobody error = &NoAnswerError{"no container answers in a simulated cluster"}

func (noAnswerer) Exec(context.Context, effect.Exec) (Executed, error)   { return Executed{}, errNobody }
func (noAnswerer) Logs(context.Context, effect.LogQuery) ([]byte, error) { return nil, errNobody }

func (noAnswerer) Ask(context.Context, effect.Ask) (map[string]any, error) {
	return nil, &NoAnswerError{"a simulated cluster has no answer; default= says what holds then"}
}

package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// update writes the answers of the real server into testdata/parity; the simulated
// one never writes there. A new case needs its requests only:
//
//	go test -tags e2e ./runtime/sim/rest -run TestParityReal -update
var update = flag.Bool("update", false, "write the real server's answers into testdata")

// A parityWorld answers the cases of testdata/parity: the store, or a real server.
type parityWorld interface {
	// do sends a request and returns code, warnings and body.
	do(t *testing.T, method, path, contentType string, body []byte) (int, []string, []byte)
	// watch returns the first n events of a watch.
	watch(t *testing.T, path string, n int) []byte
	// until sends GET until the code is as wanted: controllers are at work.
	until(t *testing.T, path string, code int) int
	// namespace makes one.
	namespace(t *testing.T) string
	// converter is where the API server has the lamps of converted_test.go converted, as a clientConfig.
	converter() string
}

// parityCase is one case: requests with the answers that were recorded.
type parityCase struct {
	name  string
	steps []parityStep
}

type parityStep struct {
	request string // "POST /api/... merge"
	body    string
	answer  string
}

// readParity reads a file of cases. A line that begins with === names a case, one
// with "> " is a request, followed by its body, one with "< " its answer.
func readParity(t testing.TB, file string) []parityCase {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []parityCase
	var into *string
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "=== "):
			cases = append(cases, parityCase{name: strings.TrimSpace(line[4:])})
			into = nil
		case strings.HasPrefix(line, "> "):
			c := &cases[len(cases)-1]
			c.steps = append(c.steps, parityStep{request: strings.TrimSpace(line[2:])})
			into = &c.steps[len(c.steps)-1].body
		case strings.HasPrefix(line, "< "):
			c := &cases[len(cases)-1]
			into = &c.steps[len(c.steps)-1].answer
			*into = line[2:]
		case into != nil:
			*into += line
		}
	}
	return cases
}

func writeParity(t *testing.T, file string, cases []parityCase) {
	var b strings.Builder
	for i, c := range cases {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "=== %s\n", c.name)
		for _, s := range c.steps {
			fmt.Fprintf(&b, "> %s\n%s< %s\n", s.request, ensureLine(s.body), strings.TrimSpace(s.answer))
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ensureLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return text + "\n"
}

// runParity runs all cases in a world and compares the answers with the recorded
// ones, or records them.
func runParity(t *testing.T, w parityWorld, record bool) {
	files, err := filepath.Glob("testdata/parity/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	n := 0
	for _, file := range files {
		cases := readParity(t, file)
		for i := range cases {
			n++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+cases[i].name, func(t *testing.T) { runCase(t, w, &cases[i], record) })
		}
		if record && !t.Failed() {
			writeParity(t, file, cases)
		}
	}
	if n < 60 {
		t.Errorf("%d cases, want 60 or more", n)
	}
}

func runCase(t *testing.T, w parityWorld, c *parityCase, record bool) {
	ns := w.namespace(t)
	answers := make([][]byte, 0, len(c.steps))
	for i := range c.steps {
		s := &c.steps[i]
		fill := func(text string) string {
			return strings.ReplaceAll(filled(text, ns, answers), "{converter}", w.converter())
		}
		f := strings.Fields(s.request)
		// Of the answer to POST! only the code counts: controllers change the rest.
		// That to POST~ is compared without its message, which names Go types or
		// holds the object in the order of its fields.
		method, codeOnly := strings.CutSuffix(f[0], "!")
		method, silent := strings.CutSuffix(method, "~")
		path := fill(f[1])
		var got string
		var raw []byte
		switch method {
		case "UNTIL":
			want, _ := strconv.Atoi(f[2])
			got = strconv.Itoa(w.until(t, path, want))
		case "WATCH":
			n, _ := strconv.Atoi(f[2])
			raw = w.watch(t, path, n)
			got = normal(t, raw, ns)
		default:
			typ := ""
			if len(f) > 2 {
				typ = f[2]
			}
			contentType, body := parityBody(t, typ, fill(s.body))
			code, warnings, answer := w.do(t, method, path, contentType, body)
			raw = answer
			if codeOnly {
				got = strconv.Itoa(code)
				break
			}
			got = strconv.Itoa(code)
			for _, text := range warnings {
				got += "\nwarning: " + strings.ReplaceAll(text, ns, "{ns}")
			}
			if silent {
				answer = withoutMessages(answer)
			}
			got += "\n" + normal(t, answer, ns)
		}
		answers = append(answers, raw)
		if record {
			s.answer = got
			continue
		}
		if diff := cmp.Diff(strings.TrimSpace(s.answer), strings.TrimSpace(got)); diff != "" {
			t.Errorf("step %d, %s (-recorded +got):\n%s", i+1, s.request, diff)
		}
	}
}

func parityBody(t testing.TB, typ, body string) (string, []byte) {
	contentType := map[string]string{
		"": "application/json", "merge": "application/merge-patch+json", "json": "application/json-patch+json",
		"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml", "raw": "application/json",
		"yaml": "application/yaml", "odd": "application/odd",
	}[typ]
	if strings.TrimSpace(body) == "" {
		return contentType, nil
	}
	if typ == "raw" || typ == "yaml" || typ == "odd" {
		return contentType, []byte(body)
	}
	text, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return contentType, text
}

var (
	referral = regexp.MustCompile(`\{(rv|uid|continue):(\d+)\}`)
	changing = []struct {
		find *regexp.Regexp
		put  string
	}{
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
		{regexp.MustCompile(`too old resource version: \d+ \(\d+\)`), "too old resource version: RV (RV)"},
		{regexp.MustCompile(`Too large resource version: (\d+), current: \d+`), "Too large resource version: $1, current: RV"},
		{regexp.MustCompile(`decodable revision=\d+`), "decodable revision=RV"},
		{regexp.MustCompile(`in record \(\d+\)`), "in record (RV)"},
		{regexp.MustCompile(`10\.\d+\.\d+\.\d+`), "10.IP"},
		{regexp.MustCompile(`gen-[bcdfghjklmnpqrstvwxz2456789]{5}`), "gen-NAME"},
	}
)

// filled puts in the namespace and what earlier answers said: {rv:1}, {uid:1}.
func filled(text, ns string, answers [][]byte) string {
	text = strings.ReplaceAll(text, "{ns}", ns)
	return referral.ReplaceAllStringFunc(text, func(ref string) string {
		m := referral.FindStringSubmatch(ref)
		n, _ := strconv.Atoi(m[2])
		if n > len(answers) {
			return ""
		}
		var obj struct {
			Metadata struct{ ResourceVersion, UID, Continue string } `json:"metadata"`
		}
		_ = json.Unmarshal(answers[n-1], &obj)
		return map[string]string{"rv": obj.Metadata.ResourceVersion, "uid": obj.Metadata.UID, "continue": obj.Metadata.Continue}[m[1]]
	})
}

// normal writes an answer as YAML, without what differs from run to run.
func normal(t *testing.T, body []byte, ns string) string {
	var out strings.Builder
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			return out.String()
		}
		if err != nil { // no JSON
			return "text: " + strings.TrimSpace(string(body))
		}
		text, err := yaml.Marshal(steady(v, "", ns))
		if err != nil {
			t.Fatal(err)
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
}

// withoutMessages takes the messages out of a Status.
func withoutMessages(body []byte) []byte {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return body
	}
	status.Message = ""
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = ""
		}
	}
	text, err := json.Marshal(status)
	if err != nil {
		return body
	}
	return text
}

func steady(v any, key, ns string) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "storageVersionHash")
		for k, e := range maps.Clone(v) {
			delete(v, k)
			v[changing[0].find.ReplaceAllString(k, changing[0].put)] = steady(e, k, ns)
		}
	case []any:
		if key == "managedFields" { // the server puts those of another second elsewhere
			slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(managerOf(a), managerOf(b)) })
		}
		for i, e := range v {
			v[i] = steady(e, "", ns)
		}
		if key == "endpoints" || key == "conditions" { // sets: controllers write them in any order
			slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(setKey(a), setKey(b)) })
		}
	case string:
		switch {
		case key == "resourceVersion" && v != "" && v != "0":
			return "RV"
		case key == "continue" && v != "":
			return "CONTINUE"
		}
		v = strings.ReplaceAll(v, ns, "{ns}")
		for _, c := range changing {
			v = c.find.ReplaceAllString(v, c.put)
		}
		return v
	}
	return v
}

// managerOf is what the server orders entries of managedFields by, within a second.
func managerOf(entry any) string {
	m, _ := entry.(map[string]any)
	return fmt.Sprint(m["operation"], " ", m["time"] != nil, " ", m["manager"], " ", m["subresource"])
}

// setKey orders the entries of a set: conditions by their type, endpoints by all that they hold.
func setKey(entry any) string {
	m, _ := entry.(map[string]any)
	return fmt.Sprint(m["type"], m)
}

// transportWorld is a parityWorld behind an HTTP transport.
type transportWorld struct {
	transport http.RoundTripper
	host      string
	spaces    func(t *testing.T) string
	wait      func(t *testing.T, look func() bool)
	patience  time.Duration
	converts  string
}

func (w *transportWorld) converter() string { return w.converts }

func (w *transportWorld) namespace(t *testing.T) string { return w.spaces(t) }

func (w *transportWorld) send(t *testing.T, method, path, contentType string, body []byte) *http.Response {
	t.Helper()
	res, err := w.try(t, method, path, contentType, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

func (w *transportWorld) try(t *testing.T, method, path, contentType string, body []byte) (*http.Response, error) {
	t.Helper()
	// A watch that misses an event must not hold the tests up.
	ctx, cancel := context.WithTimeout(t.Context(), w.patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, w.host+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("User-Agent", "parity/1 (test)")
	req.Header.Set("Accept", "application/json")
	return w.transport.RoundTrip(req)
}

func (w *transportWorld) do(t *testing.T, method, path, contentType string, body []byte) (int, []string, []byte) {
	res := w.send(t, method, path, contentType, body)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	warnings := slices.Clone(res.Header["Warning"])
	slices.Sort(warnings)
	return res.StatusCode, warnings, answer
}

func (w *transportWorld) watch(t *testing.T, path string, n int) []byte {
	res := w.send(t, "GET", path, "", nil)
	defer res.Body.Close()
	var out bytes.Buffer
	d := json.NewDecoder(res.Body)
	for range n {
		var e json.RawMessage
		if err := d.Decode(&e); err != nil {
			if ctxErr := res.Request.Context().Err(); ctxErr != nil {
				t.Errorf("%s: no such event came: %v", path, ctxErr)
			}
			fmt.Fprintf(&out, "%q", "ended: "+err.Error())
			break
		}
		out.Write(e)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func (w *transportWorld) until(t *testing.T, path string, code int) int {
	got := 0
	w.wait(t, func() bool {
		res, err := w.try(t, "GET", path, "", nil)
		if err != nil { // a real server cuts requests to a CRD that changes
			return false
		}
		got = res.StatusCode
		return res.Body.Close() == nil && got == code
	})
	return got
}

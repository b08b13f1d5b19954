package testrunner

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/script"
)

// cover loads a file, and so runs its top level.
func cover(t *testing.T, files fstest.MapFS, std fstest.MapFS, path string) *script.Cover {
	t.Helper()
	cover := script.NewCover()
	host := script.New(script.Options{Files: files, Std: std, Cover: cover, Context: loading(path, 0)})
	if _, err := host.Load(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return cover
}

const coveredText = `load("@std//k8s.star", "k")

def f(x):  # <never>
    if x < 1 and "<b>":
        return [
            "&amp;",
        ]
    return None

a = f(1); b = k
`

func TestCoveragePage(t *testing.T) {
	files := fstest.MapFS{"web/a.star": {Data: []byte(coveredText)}}
	std := fstest.MapFS{"k8s.star": {Data: []byte("k = 1\n")}}
	var c Coverage
	c.Add("addons", cover(t, files, std, "web/a.star"), nil, nil)
	if len(c.Files) != 1 || c.Files[0].Path != "addons/web/a.star" {
		t.Fatalf("files %+v", c.Files)
	}
	if got, want := CoverageOf(c.Files[0]), "coverage: 83.3% of 6 statements\tnot run: 5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var out strings.Builder
	if err := c.WritePage(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<h1>Coverage: 83.3% of 6 statements</h1>",
		`<h2 id="f0">addons/web/a.star: 83.3%</h2>`,
		`<td class="number">5</td><td class="number">6</td><td>5</td>`,
		"<i>1</i>load(&#34;@std//k8s.star&#34;, &#34;k&#34;)\n",
		"<i>2</i>\n",
		`<i>3</i><span class="ran">def f(x):  # &lt;never&gt;</span>` + "\n",
		`<i>4</i>    <span class="ran">if x &lt; 1 and &#34;&lt;b&gt;&#34;:</span>` + "\n",
		`<i>! 5</i>        <span class="missed">return [</span>` + "\n",
		`<i>! 6</i>            <span class="missed">&#34;&amp;amp;&#34;,</span>` + "\n",
		`<i>! 7</i>        <span class="missed">]</span>` + "\n",
		`<i>10</i><span class="ran">a = f(1)</span>; <span class="ran">b = k</span>` + "\n</pre>",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A line that is tested in several folders counts once.
func TestCoverageOfTheStandardLibrary(t *testing.T) {
	std := fstest.MapFS{"k8s.star": {Data: []byte("def f(x):\n    if x:\n        return 1\n    return 2\n")}}
	test := func(arg string) fstest.MapFS {
		return fstest.MapFS{"x.star": {Data: []byte("load(\"@std//k8s.star\", \"f\")\ny = f(" + arg + ")\n")}}
	}
	var c Coverage
	for arg, want := range map[string]int{"True": 3, "False": 3} {
		for _, f := range c.Add(arg, cover(t, test(arg), std, "x.star"), nil, StdTested(&tree.Tree{}, []string{"lib/k8s_test.star"})) {
			if f.Path == "@std//k8s.star" && f.Ran() != want {
				t.Errorf("%s: %d of it have run", arg, f.Ran())
			}
		}
	}
	if len(c.Files) != 3 || c.Summary() != "100.0% of 6 statements" {
		t.Errorf("%s of %+v", c.Summary(), c.Files)
	}
}

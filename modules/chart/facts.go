package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
)

// Facts are what a chart's files tell about how to treat it.
type Facts struct {
	// Digest names the files that were looked at.
	Digest string
	// Asks: a file mentions .Capabilities; All: one may want all that is served; Has are the names that files ask
	// for one by one, in lines.
	Asks, All bool
	Has       string
	// Branches: a file asks whether this is an install or an upgrade; Revision: which revision this
	// is.
	Branches, Revision bool
	// CRDs: there are files in crds/, of subcharts.
	CRDs bool
}

// Load builds a chart of files that may come from anywhere, within the limits of charts; its
// dependencies may be missing.
func Load(c *Chart) (*helm.Chart, error) {
	if err := checkFiles(c.Files); err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	return loadFiles(c)
}

func loadFiles(c *Chart) (*helm.Chart, error) {
	ch, err := helm.Load(c.Files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %s", c.Name, Tidy(err.Error()))
	}
	return ch, nil
}

// Installable builds the chart from its files alone. Helm changes a chart while it works
// on it, so each use needs its own.
func Installable(c *Chart) (*helm.Chart, error) {
	ch, err := loadFiles(c)
	if err != nil {
		return nil, err
	}
	if ch.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library: it has nothing to install (type in Chart.yaml)", c.Name)
	}
	// The values of a target are composed over the chart's own already. Helm
	// would lay them below once more, and bring back what was taken out.
	ch.Values = map[string]any{}
	if err := helm.Missing(ch); err != nil {
		return nil, fmt.Errorf("chart %s: a dependency is %s; run `starling fetch`", c.Name, Tidy(err.Error()))
	}
	return ch, nil
}

// FactsOf looks at all files of a chart with a digest, and of its subcharts; packed ones too.
func FactsOf(c *Chart, digest string) (Facts, error) {
	if err := checkFiles(c.Files); err != nil {
		return Facts{}, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	ch, err := Installable(c)
	if err != nil {
		return Facts{}, err
	}
	return factsOf(digest, ch), nil
}

func factsOf(digest string, ch *helm.Chart) Facts {
	f := Facts{Digest: digest, CRDs: len(ch.CRDObjects()) > 0}
	has := map[string]bool{}
	for _, c := range helm.All(ch) {
		for _, file := range slices.Concat(c.Templates, c.Files) { // tpl (.Files.Get …)
			f.ask(file.Data, has)
			f.Branches = f.Branches || bytes.Contains(file.Data, []byte("IsInstall")) || bytes.Contains(file.Data, []byte("IsUpgrade"))
			f.Revision = f.Revision || bytes.Contains(file.Data, []byte("Revision"))
		}
	}
	f.Has = strings.Join(slices.Sorted(maps.Keys(has)), "\n")
	return f
}

var (
	// capabilitiesWord is a whole word: allowedCapabilities, which PodSecurityPolicies of many charts have, asks nothing.
	capabilitiesWord = regexp.MustCompile(`\bCapabilities\b`)
	// plainQuestion is a use of .Capabilities that asks one thing: the version, which is an input of all charts, that of
	// Helm, or whether one name is served.
	plainQuestion = regexp.MustCompile("\\.Capabilities\\.(?:KubeVersion\\b|HelmVersion\\b|APIVersions\\.Has\\s+(?:\"([^\"\\\\\n]+)\"|`([^`\n]+)`))")
)

// ask notes what a file asks.
func (f *Facts) ask(file []byte, has map[string]bool) {
	mentions := len(capabilitiesWord.FindAllIndex(file, -1))
	if mentions == 0 {
		return
	}
	plain := plainQuestion.FindAllSubmatch(file, -1)
	for _, q := range plain {
		if name := cmp.Or(string(q[1]), string(q[2])); name != "" {
			has[name] = true
		}
	}
	f.Asks, f.All = true, f.All || mentions > len(plain)
}

// AsksCapabilities says whether a chart may render to something else in another cluster: a file mentions
// .Capabilities, or is packed.
func AsksCapabilities(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool {
		return capabilitiesWord.Match(f.Data) || strings.HasSuffix(f.Path, ".tgz")
	})
}

// Answer is what the chart gets to know of what is served.
func (f Facts) Answer(caps *helm.Capabilities) string {
	if f.All {
		return strings.Join(caps.APIVersions, "\n")
	}
	var out strings.Builder
	for name := range strings.SplitSeq(f.Has, "\n") {
		out.WriteString(name + " " + strconv.FormatBool(caps.APIVersions.Has(name)) + "\n")
	}
	return out.String()
}

// Unanswered says why a chart has no answer: discovery that has failed decides nothing that a chart names. One that asks
// for all that is served goes on with what was served before, as its own APIService may be what is away.
func (f Facts) Unanswered(failed map[string]error) error {
	for _, of := range slices.Sorted(maps.Keys(failed)) {
		asks := false
		for name := range strings.SplitSeq(f.Has, "\n") {
			asks = asks || name == of || strings.HasPrefix(name, of+"/")
		}
		if asks {
			return fmt.Errorf("the chart asks what the cluster serves (.Capabilities), and the API server does not tell of %s, so the release stays as it is: %w", of, failed[of])
		}
	}
	return nil
}

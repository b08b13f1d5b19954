package builtins

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

// Verbs of grants that show a power of hooks which no call of theirs names. "*" holds none of them.
const (
	// VerbMutate: k8s.mutate changes objects as they are written.
	VerbMutate = "mutate"
	// VerbConvert: k8s.convert answers for all objects of a definition.
	VerbConvert = "convert"
	// VerbFinalize: a cleanup holds up the deletion of objects.
	VerbFinalize = "finalize"
)

func isPower(verb string) bool {
	return verb == VerbMutate || verb == VerbConvert || verb == VerbFinalize
}

// Calls are the verbs of the grant without the ones that show a power.
func (g *Grant) Calls() []string { return slices.DeleteFunc(slices.Clone(g.Verbs), isPower) }

// Power is what a hook does to objects that no call of it names.
type Power struct {
	Verb       string
	APIVersion string
	// Kind or Plural is set; Plural "*" stands for all. Name is that of a definition.
	Kind, Plural, Name string
	// Pos is where the hook asks for it, Does what it does.
	Pos, Does string
}

// Group is the API group of the objects.
func (p *Power) Group() string { return effect.GroupOf(p.APIVersion) }

// Powers are those of a hook.
func (h *HookDecl) Powers() (out []Power) {
	for i := range h.Bindings {
		switch b := &h.Bindings[i]; {
		case b.Converts():
			out = append(out, Power{Verb: VerbConvert, APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: b.Convert.CRD,
				Pos: b.Convert.Pos, Does: "converts " + b.Convert.CRD})
		case b.Admission == nil || !b.Admission.Mutate:
		case b.Admission.Rules == nil:
			a := b.Admission
			out = append(out, Power{Verb: VerbMutate, APIVersion: a.APIVersion, Kind: a.Kind, Pos: a.Pos,
				Does: fmt.Sprintf("changes objects of %s %s as they are written", a.APIVersion, a.Kind)})
		default:
			for _, r := range b.Admission.Rules {
				out = append(out, r.Powers(b.Admission.Pos)...)
			}
		}
	}
	if b := h.Binding(h.ForEach); h.Cleanup != nil && b != nil && b.Watch != nil {
		w := b.Watch
		out = append(out, Power{Verb: VerbFinalize, APIVersion: w.APIVersion, Kind: w.Kind, Pos: w.Pos,
			Does: fmt.Sprintf("has a cleanup, so its finalizer holds up the deletion of each %s %s", w.APIVersion, w.Kind)})
	}
	return out
}

// Powers are those of a mutating hook with this rule.
func (r *AdmissionRule) Powers(pos string) (out []Power) {
	for _, group := range r.Groups {
		version := "v1"
		if len(r.Versions) > 0 && r.Versions[0] != "*" {
			version = r.Versions[0]
		}
		switch group {
		case "":
		case "*":
			version = "*"
		default:
			version = group + "/" + version
		}
		for _, resource := range r.Resources {
			plural, _, _ := strings.Cut(resource, "/")
			p := Power{Verb: VerbMutate, APIVersion: version, Plural: plural, Pos: pos, Does: fmt.Sprintf("changes %s of apiGroups %q as they are written", resource, group)}
			if !slices.ContainsFunc(out, func(o Power) bool { return o.APIVersion == p.APIVersion && o.Plural == p.Plural }) {
				out = append(out, p)
			}
		}
	}
	return out
}

// is says whether a kind is one that the power is about.
func (p *Power) is(kind string) bool {
	if p.Kind != "" {
		return p.Kind == kind
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return plural.Resource == p.Plural || kindOfResource(p.Plural) == kind
}

// Granted says whether a grant shows the power.
func (p *Power) Granted(grants []Grant) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool {
		group := g.APIVersion == "*" || p.APIVersion != "*" && effect.GroupOf(g.APIVersion) == p.Group()
		return group && slices.Contains(g.Verbs, p.Verb) && (g.Kind == "*" || p.is(g.Kind)) &&
			(g.Names == nil || slices.Contains(g.Names, p.Name))
	})
}

// Grant is the grant that shows the power, as it is written.
func (p *Power) Grant() string {
	kind, names := p.Kind, ""
	switch {
	case p.Plural == "*" || p.APIVersion == "*":
		kind = "*"
	case kind == "":
		kind = kindOfResource(p.Plural)
	}
	if p.Name != "" {
		names = fmt.Sprintf(", names = [%q]", p.Name)
	}
	return fmt.Sprintf("grant(%q, %q, verbs = [%q]%s)", p.APIVersion, kind, p.Verb, names)
}

// kindOfResource is the likely kind of a resource.
func kindOfResource(plural string) string {
	if _, kind := spec.KindNamed(plural); kind != "" {
		return kind
	}
	for _, end := range [][2]string{{"ies", "y"}, {"sses", "ss"}, {"s", ""}} {
		if stem, is := strings.CutSuffix(plural, end[0]); is && stem != "" {
			return strings.ToUpper(stem[:1]) + stem[1:] + end[1]
		}
	}
	return plural
}

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// seen is what has come of the conversion of one definition.
type seen struct {
	definition, hook string
	err              error
}

// conversions sees to the definitions that hooks convert: their modules are on, or they point to us already. It never
// takes the conversion away: what is stored in another version could not be read any more.
func (m *Manager) conversions(ctx context.Context, w want, s shape) (out []seen) {
	if !w.converting {
		return nil
	}
	live := map[string]map[string]any{}
	for _, v := range m.watches.Snapshot(watchDefinitions) {
		obj := v.(*object.Object).Map()
		name, _ := obj["name"].(string)
		live[name] = obj
	}
	served := map[string]bool{}
	for _, b := range w.all {
		if b.binding.Convert != nil {
			served[b.binding.Convert.CRD] = true
		}
	}
	m.mu.Lock()
	broken := m.broken[watchDefinitions]
	m.mu.Unlock()
	for _, b := range bindingsOf(w.gen) {
		if b.binding.Convert == nil {
			continue
		}
		name := b.binding.Convert.CRD
		switch has := live[name]; {
		case has != nil && (served[name] || has["instance"] == m.o.Instance):
			out = append(out, seen{kindDefinition + " " + name, b.hook.ID, m.convert(ctx, b, s, has)})
		case has == nil && served[name] && broken != nil: // else a watch wakes us when it comes
			out = append(out, seen{kindDefinition + " " + name, b.hook.ID, broken})
		}
	}
	return out
}

// convert has a definition be converted here. A conversion of somebody else is taken over where module.star says so, and
// kept for the time after this instance.
func (m *Manager) convert(ctx context.Context, b bound, s shape, has map[string]any) error {
	ref := effect.Ref{APIVersion: definitions, Kind: kindDefinition, Name: b.binding.Convert.CRD}
	obj := s.conversion(b.hook, b.binding)
	wants := obj["spec"].(map[string]any)["conversion"]
	mark, _ := has["instance"].(string)
	other, given := strings.CutSuffix(mark, effect.GivenBack)
	ours := other == m.o.Instance
	if ours && !given && reflect.DeepEqual(has["conversion"], wants) {
		return nil
	}
	if other != "" && !ours && !given {
		return fmt.Errorf("%s is converted by another starling (%s); detach that one, or convert it in one place", ref, other)
	}
	before, _ := has["before"].(string)
	owner := m.owner(has["conversion"])
	moved := ours && has["others"] == false // this instance has written it, at an address of before
	switch {
	case owner == "", given, moved:
	case ours && before != "":
		return fmt.Errorf("%s is converted by %s again, which writes it after it was taken over; nothing is written any more: end that one, or leave k8s.convert out", ref, owner)
	default:
		power := builtins.Power{Verb: builtins.VerbConvert, APIVersion: definitions, Kind: kindDefinition, Name: ref.Name}
		if !power.Granted(b.grants) {
			return fmt.Errorf("%s is converted by %s already; to take that over until `starling detach`, add to module(grants = […]) of module %s: %s", ref, owner, b.hook.Module, power.Grant())
		}
		text, err := json.Marshal(has["conversion"])
		if err != nil {
			return err
		}
		before = string(text)
	}
	if before != "" {
		obj["metadata"].(map[string]any)["annotations"].(map[string]any)[annotationBefore] = before
	}
	if owner != "" { // an apply would leave what the other one has of clientConfig
		body := object.CopyPlain(map[string]any{"metadata": map[string]any{"annotations": obj["metadata"].(map[string]any)["annotations"]}, "spec": obj["spec"]}).(map[string]any)
		other := "service"
		if m.o.Reach.URL == "" {
			other = "url"
		}
		effect.At[map[string]any](body, "spec", "conversion", "webhook", "clientConfig")[other] = nil
		w := effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchMerge, Body: body}}
		if _, err := m.o.Client.Write(ctx, fieldManager, w); err != nil {
			return err
		}
	}
	err := m.apply(ctx, ref, obj)
	if err == nil && owner != "" && !given && !moved {
		m.o.Log.Warn().Str("module", b.hook.Module).Msg("webhooks: " + ref.String() + " was converted by " + owner + " and is converted here now; detach gives it back")
		m.o.TookOver(ref, owner)
	}
	return err
}

// owner names the webhook of somebody else that converts, "" when there is none.
func (m *Manager) owner(conversion any) string {
	is, _ := conversion.(map[string]any)
	client := effect.At[map[string]any](is, "webhook", "clientConfig")
	if is["strategy"] != "Webhook" || client == nil {
		return ""
	}
	if service, is := client["service"].(map[string]any); is {
		path, _ := service["path"].(string)
		if service["namespace"] == m.o.Namespace && service["name"] == m.o.Reach.Service && strings.HasPrefix(path, "/convert/") {
			return ""
		}
		return fmt.Sprintf("Service %v/%v", service["namespace"], service["name"])
	}
	text, _ := client["url"].(string)
	if m.o.Reach.URL != "" && strings.HasPrefix(text, m.o.Reach.URL+"/convert/") {
		return ""
	}
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return "https://" + u.Host
	}
	return "another webhook"
}

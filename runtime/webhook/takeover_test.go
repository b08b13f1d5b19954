package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// A conversion of somebody else is taken over only where module.star says so. Its owner is told, and it comes back as
// the instance is detached.
func TestAForeignConversion(t *testing.T) {
	const convert = "def up(o):\n    return o\n\nhook(on = [k8s.convert(\"lamps.example.com.x\", {(\"v1\", \"v2\"): up, (\"v2\", \"v1\"): up})])\n"
	own := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: lamps.example.com.x}\n" +
		"spec: {group: example.com.x, names: {kind: Lamp, plural: lamps}, versions: [{name: v1}, {name: v2}]}\n"
	for name, client := range map[string]map[string]any{
		"a Service":                       {"service": map[string]any{"namespace": "theirs", "name": "lamps", "path": "/convert", "port": int64(443)}, "caBundle": "eA=="},
		"a URL":                           {"url": "https://lamps.example.com/convert", "caBundle": "eA=="},
		"a Service with a path like ours": {"service": map[string]any{"namespace": "theirs", "name": "lamps", "path": "/convert/lamps", "port": int64(443)}, "caBundle": "eA=="},
		"a URL with a path like ours":     {"url": "https://lamps.example.com/convert/lamps", "caBundle": "eA=="},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": client, "conversionReviewVersions": []any{"v1"}}}
			conversion := func(w *world) any {
				return w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")["spec"].(map[string]any)["conversion"]
			}
			told := make(chan error, 10)
			taken := make(chan string, 10)
			tells := func(o *Options) {
				o.Registered = func(_ string, err error) { told <- err }
				o.TookOver = func(_ effect.Ref, from string) { taken <- from }
			}

			w := newWorld(t, map[string]string{"web/module.star": "module()\n", "web/crds/lamps.yaml": own, "web/hooks/a.star": convert})
			putDefinition(w, map[string]any{"conversion": theirs})
			w.run(tells)
			w.serve("web", true)
			if err := <-told; err == nil || !strings.Contains(err.Error(), `add to module(grants = […]) of module web: grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"], names = ["lamps.example.com.x"])`) {
				t.Errorf("without a line: %v", err)
			}
			w.stop()
			if diff := cmp.Diff(theirs, conversion(w)); diff != "" {
				t.Fatalf("it was taken:\n%s", diff)
			}

			granted := newWorld(t, map[string]string{"web/crds/lamps.yaml": own, "web/hooks/a.star": convert})
			putDefinition(granted, map[string]any{"conversion": theirs})
			granted.run(tells)
			granted.serve("web", true)
			if from := <-taken; from != "Service theirs/lamps" && from != "https://lamps.example.com" {
				t.Errorf("it was that of %s", from)
			}
			granted.stop()
			if text := fmt.Sprint(conversion(granted)); !strings.Contains(text, "/convert/web/") || strings.Contains(text, "theirs") || strings.Contains(text, "url") {
				t.Errorf("it is %s", text)
			}
			fresh := newWorldOn(granted) // it keeps what was there before
			putConversion(fresh, map[string]any{"strategy": "None"})
			fresh.run(tells)
			fresh.serve("web", true)
			fresh.eventually("converted again", func() error {
				if !strings.Contains(fmt.Sprint(conversion(fresh)), "/convert/web/") {
					return errors.New("not yet")
				}
				return nil
			})

			// Detached while it is converted here.
			fresh.stop()
			ours := conversion(fresh)
			if err := Detach(t.Context(), fresh.client, "ns.starling", func(Detached) {}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(theirs, conversion(fresh)); diff != "" {
				t.Errorf("from %v it came back as\n%s", ours, diff)
			}
			fresh = newWorldOn(fresh)
			fresh.run(tells)
			fresh.serve("web", true)
			<-taken

			// The other one lives: it writes its own again, which is newer, and has it.
			theirs = object.CopyPlain(theirs).(map[string]any)
			theirs["webhook"].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = "eHg="
			putConversion(fresh, theirs)
			fresh.eventually("it is told", func() error {
				select {
				case err := <-told:
					if err != nil && strings.Contains(err.Error(), "again, which writes it after it was taken over") {
						return nil
					}
					return fmt.Errorf("told is %v", err)
				case from := <-taken:
					t.Fatalf("it was taken from %s once more", from)
				default:
				}
				return fmt.Errorf("nothing: %v", fresh.api.Object(definitions, kindDefinition, "", "lamps.example.com.x"))
			})
			fresh.stop()
			if diff := cmp.Diff(theirs, conversion(fresh)); diff != "" {
				t.Errorf("there is a fight:\n%s", diff)
			}
			var done []string
			if err := Detach(t.Context(), fresh.client, "ns.starling", func(d Detached) { done = append(done, d.Ref.String()+": "+d.Done) }); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(done, "\n"); !strings.Contains(text, "CustomResourceDefinition lamps.example.com.x: converted by others already") {
				t.Errorf("detached: %s", text)
			}
			was, _ := json.Marshal(theirs)
			is, _ := json.Marshal(conversion(fresh))
			if string(was) != string(is) {
				t.Errorf("afterwards it is %s, want %s", is, was)
			}
			if meta := fmt.Sprint(fresh.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")["metadata"]); strings.Contains(meta, "starling.dev/") {
				t.Errorf("left: %s", meta)
			}
		})
	}
}

// The conversion follows the instance to another address, whether it was taken over or not, and what was there before
// comes back all the same.
func TestAConversionFollowsTheAddress(t *testing.T) {
	const convert = "def up(o):\n    return o\n\nhook(on = [k8s.convert(\"lamps.example.com.x\", {(\"v1\", \"v2\"): up, (\"v2\", \"v1\"): up})])\n"
	none := map[string]any{"strategy": "None"}
	theirs := map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": []any{"v1"},
		"clientConfig": map[string]any{"url": "https://theirs.example/convert", "caBundle": "eA=="}}}
	for name, before := range map[string]map[string]any{"its own": none, "taken over": theirs} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"web/hooks/a.star": convert})
			putDefinition(w, map[string]any{"conversion": before})
			client := func() map[string]any {
				return effect.At[map[string]any](w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x"), "spec", "conversion", "webhook", "clientConfig")
			}
			for _, reach := range []Reach{{URL: "https://10.0.0.5:9443"}, {URL: "https://10.0.0.6:9443"}, {Service: "starling", Port: 443}, {Service: "other", Port: 443}, {URL: "https://10.0.0.7:9443"}} {
				next := newWorldOn(w)
				told := make(chan error, 10)
				next.run(func(o *Options) { o.Reach, o.Registered = reach, func(_ string, err error) { told <- err } })
				next.serve("web", true)
				next.eventually("it follows", func() error {
					is := client()
					url, service := effect.At[string](is, "url"), effect.At[string](is, "service", "name")
					if service != reach.Service || !strings.HasPrefix(url, reach.URL) || (url == "") != (reach.URL == "") {
						return fmt.Errorf("%+v: it is %v; told: %d", reach, is, len(told))
					}
					return nil
				})
				next.stop()
			}
			if err := Detach(t.Context(), w.client, "ns.starling", func(Detached) {}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(before), effect.At[any](w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x"), "spec", "conversion")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// putConversion has somebody change the conversion alone.
func putConversion(w *world, conversion map[string]any) {
	w.t.Helper()
	obj := object.CopyPlain(w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")).(map[string]any)
	obj["spec"].(map[string]any)["conversion"] = conversion
	w.api.Put(obj)
}

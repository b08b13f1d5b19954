package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
)

const (
	// annotationHook names the hook of a webhook configuration.
	annotationHook = "starling.dev/hook"
	// annotationBefore is the conversion that was there before, as JSON: it comes back when this instance is detached.
	annotationBefore = "starling.dev/conversion-before"
)

var (
	slugPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	notInSlugs  = regexp.MustCompile(`[^a-z0-9.-]+`)
)

// maxSlug keeps names of objects and paths within their limits.
const maxSlug = 60

// slug makes a part of object names and paths from the id that a hook has in its module: "hooks/pods.star:check"
// becomes "pods.check". Two ids never have the same slug: what is not written plainly ends in a hash.
func slug(id string) string {
	plain := id
	if file, fn, ok := strings.Cut(strings.TrimPrefix(id, "hooks/"), ".star:"); ok && strings.HasPrefix(id, "hooks/") {
		plain = strings.ReplaceAll(file, "/", ".") + "." + strings.ReplaceAll(fn, "_", "-")
		if strings.ContainsAny(file, ".") || strings.Contains(fn, ".") {
			return hashed(plain, id)
		}
	} else if strings.Contains(id, ".") { // a name= that looks like a file
		return hashed(plain, id)
	}
	if len(plain) > maxSlug || !slugPattern.MatchString(plain) {
		return hashed(plain, id)
	}
	return plain
}

// hashed cuts and cleans a text and makes it unique by a hash of the id.
func hashed(text, id string) string {
	sum := sha256.Sum256([]byte(id))
	text = notInSlugs.ReplaceAllString(strings.ToLower(text), "-")
	text = strings.Trim(text[:min(len(text), maxSlug-9)], "-.")
	text = regexp.MustCompile(`[.-]*\.[.-]*`).ReplaceAllString(text, ".")
	if text == "" {
		return hex.EncodeToString(sum[:4])
	}
	return text + "-" + hex.EncodeToString(sum[:4])
}

func bindingSlug(name string) string {
	if len(name) > maxSlug || !slugPattern.MatchString(name) || strings.Contains(name, ".") {
		return hashed(name, name)
	}
	return name
}

// pathOf is where the API server asks.
func pathOf(h *generation.Hook, b *builtins.Binding) string {
	verb := "/convert/"
	switch {
	case b.Admission != nil && b.Admission.Mutate:
		verb = "/mutate/"
	case b.Admission != nil:
		verb = "/validate/"
	}
	return verb + h.Module + "/" + slug(h.HookDecl.ID) + "/" + bindingSlug(b.Name)
}

// webhookName is the name in the messages of the API server: 'admission webhook
// "validate.pods.check.web.starling.dev" denied the request'.
func webhookName(h *generation.Hook, b *builtins.Binding) string {
	return bindingSlug(b.Name) + "." + slug(h.HookDecl.ID) + "." + h.Module + ".starling.dev"
}

// objectName is the name of the configuration object. Those objects are not in a
// namespace, so it begins with the instance.
func objectName(instance string, h *generation.Hook, b *builtins.Binding) string {
	prefix := strings.ToLower(strings.ReplaceAll(instance, "_", "-"))
	return prefix + "." + h.Module + "." + slug(h.HookDecl.ID) + "." + bindingSlug(b.Name)
}

// routesOf is what a server answers for a hook.
func routesOf(h *generation.Hook, admissions, conversions bool, into map[string]route) {
	for i := range h.Bindings {
		b := &h.Bindings[i]
		if b.Admission != nil && admissions || b.Converts() && conversions {
			into[pathOf(h, b)] = route{
				module: h.Module, hook: h.ID, binding: b.Name,
				convert: b.Convert != nil, mutate: b.Admission != nil && b.Admission.Mutate,
			}
		}
	}
}

package rbac

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
)

// calls are what the files of a module call, where a grant alone does not say which
// rights that takes.
type calls struct {
	create, jq, set, event, evict, wait bool
	// subresources are those that are written, each with the kinds that are written
	// out, "" for one that is not.
	subresources map[string][]string
	// signers are those of certificate requests, as far as the code names them.
	signers []string
	given   given
}

// callsOf reads the files of each module. Files in a lib folder, or in global/, may
// be loaded by all.
func callsOf(gen *generation.Generation) map[string]calls {
	out := map[string]calls{}
	for _, m := range gen.All() {
		c := calls{subresources: map[string][]string{}}
		// The tree is in memory: a folder that cannot be listed is not possible.
		_ = fs.WalkDir(gen.Tree.Files, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".star") || strings.HasSuffix(p, "_test.star") {
				return err
			}
			if !strings.HasPrefix(p, m.Tree.Dir+"/") && !strings.HasPrefix(p, "global/") && !slices.Contains(strings.Split(path.Dir(p), "/"), "lib") {
				return nil
			}
			src, err := fs.ReadFile(gen.Tree.Files, p)
			if err != nil {
				return err
			}
			if file, err := script.Parse(p, src); err == nil { // else nobody loads it
				syntax.Walk(file, func(n syntax.Node) bool {
					switch n := n.(type) {
					case *syntax.CallExpr:
						c.see(n)
					case *syntax.DictExpr:
						c.given.see(n)
					case *syntax.DictEntry:
						if textOf(n.Key) == "signerName" {
							c.sign(n.Value)
						}
					}
					return true
				})
			}
			return nil
		})
		out[m.Name] = c
	}
	return out
}

func (c *calls) see(call *syntax.CallExpr) {
	if fn, ok := call.Fn.(*syntax.Ident); ok && fn.Name == "request" { // of @std//certs.star
		c.sign(script.ArgumentOf(call, 1, "signer"))
	}
	dot, ok := call.Fn.(*syntax.DotExpr)
	if !ok {
		return
	}
	if of, ok := dot.X.(*syntax.Ident); !ok || of.Name != "k8s" {
		return
	}
	switch dot.Name.Name {
	case "create":
		c.create = true
	case "apply_set":
		c.set = true
	case "event":
		c.event = true
	case "evict":
		c.evict = true
	case "delete":
		c.wait = c.wait || script.ArgumentOf(call, -1, "wait") != nil
	case "status":
		c.write("status", call)
	case "patch":
		c.jq = c.jq || script.ArgumentOf(call, -1, "jq") != nil
		if sub := textOf(script.ArgumentOf(call, -1, "subresource")); sub != "" {
			c.write(sub, call)
		}
	}
}

// sign notes a signer, which is named as "example.org/name".
func (c *calls) sign(signer syntax.Expr) {
	if name := textOf(signer); strings.Contains(name, "/") && !slices.Contains(c.signers, name) {
		c.signers = append(c.signers, name)
	}
}

// textOf is a text that stands in the code, or "".
func textOf(x syntax.Expr) string {
	text, _ := script.TextOf(x)
	return text
}

// write notes that a subresource is written.
func (c *calls) write(subresource string, call *syntax.CallExpr) {
	kind := ""
	if len(call.Args) > 1 {
		kind = textOf(call.Args[1])
	}
	c.subresources[subresource] = append(c.subresources[subresource], kind)
}

package generation

import "fmt"

// checkPaths refuses hooks that would receive requests at one path: who got them would
// be chance.
func (g *Generation) checkPaths() {
	type place struct {
		module *Module
		hook   *Hook
		pos    string
	}
	taken := map[string]place{}
	for m, h := range g.Hooks() {
		for i := range h.Bindings {
			r := h.Bindings[i].Receive
			if r == nil {
				continue
			}
			here := place{m, h, r.Pos}
			other, found := taken[r.Path]
			if !found {
				taken[r.Path] = here
				continue
			}
			here.module.join(fmt.Errorf("%s: hook %s receives requests at %s, as hook %s does (%s); give one another path", here.pos, h.ID, r.Path, other.hook.ID, other.pos))
			if other.module != m {
				other.module.join(fmt.Errorf("%s: hook %s receives requests at %s, as hook %s does (%s); give one another path", other.pos, other.hook.ID, r.Path, h.ID, here.pos))
			}
		}
	}
}

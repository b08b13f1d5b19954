package check

import "fmt"

// powers tells what modules do to objects that no call of theirs names: a reviewer finds it here.
func (c *checker) powers() {
	for _, m := range c.modules {
		for _, h := range m.Hooks {
			for _, p := range h.Powers() {
				c.addAt(Note, "powers", m.Name, p.Pos, fmt.Sprintf("hook %s %s", h.HookDecl.ID, p.Does), "")
			}
		}
	}
}

package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// MaxParts is how many parts one parent may have.
const MaxParts = 1000

// Layers returns the layer of each part: 0 for one that comes after no other, else one more than the
// highest of those that it comes after. It refuses parts that cannot be told apart, that wait for
// each other, or that come after others of their rollout.
func Layers(parts []Part) ([]int, error) {
	if len(parts) > MaxParts {
		return nil, fmt.Errorf("%d parts are more than the %d that one parent may have", len(parts), MaxParts)
	}
	l := layering{
		parts: parts, byName: make(map[string]int, len(parts)), layers: slices.Repeat([]int{-1}, len(parts)),
		rollouts: make([][]string, len(parts)),
	}
	ids := make(map[ID]string, len(parts))
	for i := range parts { // each has its own name, and its own object
		p := &parts[i]
		if p.Name == "" {
			return nil, errors.New("a part has no name: " + p.ID.String())
		}
		if _, taken := l.byName[p.Name]; taken {
			return nil, fmt.Errorf("two parts have the name %q; give one of them another name=", p.Name)
		}
		if other, taken := ids[p.ID.key()]; taken {
			return nil, fmt.Errorf("parts %q and %q are the same: %s", other, p.Name, p.ID)
		}
		l.byName[p.Name], ids[p.ID.key()] = i, p.Name
	}
	for i := range parts {
		if err := l.visit(i); err != nil {
			return nil, err
		}
	}
	return l.layers, nil
}

type layering struct {
	parts  []Part
	byName map[string]int
	layers []int    // -1: not known yet
	path   []string // the parts that are under way
	// rollouts are those of each part and of all before it.
	rollouts [][]string
}

// visit finds the layer of a part, and first the layers of the parts that it comes after. If a part of a rollout comes
// after another part of that rollout, perhaps by way of others, both would wait for each other: visit refuses it. It
// calls itself, as parts are few.
func (l *layering) visit(i int) error {
	p, layer := &l.parts[i], 0
	if l.layers[i] >= 0 {
		return nil
	}
	if from := slices.Index(l.path, p.Name); from >= 0 {
		return fmt.Errorf("parts wait for each other: %s", strings.Join(append(l.path[from:], p.Name), " after "))
	}
	l.path = append(l.path, p.Name)
	for _, name := range p.After {
		before, known := l.byName[name]
		if !known {
			near := message.Nearest(name, slices.Sorted(maps.Keys(l.byName)))
			if near != "" {
				near = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return fmt.Errorf("part %q comes after %q, which is no part%s", p.Name, name, near)
		}
		if err := l.visit(before); err != nil {
			return err
		}
		layer = max(layer, l.layers[before]+1)
		for _, rollout := range l.rollouts[before] {
			if rollout == p.Rolling {
				return fmt.Errorf("part %q comes after %q, and both are of one rolling(…), which has an order already: leave after out", p.Name, name)
			}
			if !slices.Contains(l.rollouts[i], rollout) {
				l.rollouts[i] = append(l.rollouts[i], rollout)
			}
		}
	}
	if p.Rolling != "" {
		l.rollouts[i] = append(l.rollouts[i], p.Rolling)
	}
	l.path, l.layers[i] = l.path[:len(l.path)-1], layer
	return nil
}

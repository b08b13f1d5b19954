package tree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/runtime/object"
)

// maxName is Helm's limit for the name of a release.
const maxName = 53

// ParseFolder takes a module folder's name apart: "020-ingress-nginx" is weight 20
// and name "ingress-nginx", "cert-manager" has no weight. The error says why the
// name cannot be a module's; name is then the folder's.
func ParseFolder(folder string) (weight *int, name string, err error) {
	name = folder
	if digits, rest, ok := strings.Cut(folder, "-"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
		n, convErr := strconv.Atoi(digits)
		if convErr != nil || n > 1_000_000 {
			return nil, folder, fmt.Errorf("the weight %s is too large, the limit is 1000000", digits)
		}
		weight, name = &n, rest
	}
	if err := checkName(name); err != nil {
		return nil, folder, err
	}
	return weight, name, nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the folder has a weight and no name: call it like 020-web")
	case name == "global":
		return errors.New("no module may be named global: that is the folder of the global hooks")
	case len(name) > maxName:
		return fmt.Errorf("the module's name has %d characters, the limit is %d: shorten it", len(name), maxName)
	}
	if strings.ContainsFunc(name, notInName) || name[0] == '-' || name[len(name)-1] == '-' {
		return errors.New("a module's name is made of a-z, 0-9 and -, with no - at an end: rename the folder")
	}
	return nil
}

func notInName(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }

// Key returns the name by which values and config call a module, see [object.CamelKey].
func Key(name string) string { return object.CamelKey(name) }

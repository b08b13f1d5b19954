package object

import (
	"fmt"
	"strings"
)

// Below is the path of a field in the map at a path, as people write it: spec.ports, metadata.labels["a.b/c"].
func Below(path, key string) string {
	switch {
	case strings.ContainsAny(key, ". /"):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}

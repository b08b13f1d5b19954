package effect

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const managerPrefix = "starling/"

// Manager is the field manager of a hook, the owner of the fields that it applies: at
// most 128 characters, so that long ids end in a hash.
func Manager(hook string) string {
	name := managerPrefix + hook
	if len(name) <= 128 {
		return name
	}
	sum := sha256.Sum256([]byte(hook))
	return name[:111] + "-" + hex.EncodeToString(sum[:8])
}

// ManagerModule is the module of the hook that has a field manager, "" when it is none of a hook.
func ManagerModule(manager string) string {
	id, ok := strings.CutPrefix(manager, managerPrefix)
	module, _, found := strings.Cut(id, "/")
	if !ok || !found {
		return ""
	}
	return module
}

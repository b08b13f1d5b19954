package status

import (
	"crypto/sha256"
	"encoding/hex"
)

// LabelInstance marks the objects of an instance: its own, and its release
// Secrets; not what charts make.
const LabelInstance = "starling.dev/instance"

// InstanceLabel is the value of [LabelInstance]: "<operator namespace>.<name>",
// which ends in a hash where it would be longer than the 63 characters of a label.
func InstanceLabel(namespace, name string) string {
	label := namespace + "." + name
	if len(label) <= 63 {
		return label
	}
	sum := sha256.Sum256([]byte(label))
	return label[:46] + "-" + hex.EncodeToString(sum[:8])
}

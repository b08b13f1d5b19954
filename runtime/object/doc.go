// Package object holds the value that a Kubernetes object is in Starlark, the
// paths into such objects and into values, and the conversion between Starlark
// values and plain data.
//
// Plain data is what a decoded JSON document is made of: nil, bool, int64,
// float64, string, []any and map[string]any, as a tree. In Starlark it has two
// shapes:
//
//	object       *Object, frozen and lazy over the decoded map; what the cluster
//	             holds: o.metadata.name, o["spec"], o.get("spec.replicas", 1)
//	dict, list   FromPlain, frozen and complete; what hooks and filters made:
//	             values, snapshots of filter results
//
// ToPlain leads back. It is the one gate through which data leaves a Starlark
// program, so it refuses what JSON cannot hold (functions, cycles, keys that are
// no strings, integers past 64 bits) and what is too deep or too large, and says
// at which path.
//
// No value of this package has the Starlark type "dict" or "list": go.starlark.net
// casts both sides of == to its own Go type when the names are equal.
package object

// Package values composes the values of modules. It is pure: the same sources
// give the same bytes, whatever happened before.
//
// The values of one module, or the global ones, come from a [Section]: layers,
// lowest first,
//
//  1. the chart's values.yaml,
//  2. the section in the values.yaml of the tree,
//  3. schema defaults, which fill gaps and override nothing,
//  4. values.default of hooks,
//  5. the user's config in the cluster,
//  6. what hooks set, merge and remove, in the order of the hooks' ids;
//
// then schema defaults fill the gaps that the upper layers made.
//
// # Sharing
//
// Results of this package are read only and may share structure with its
// inputs and with other results: composing the values of a hundred modules
// copies only the maps that a layer changes. For the same reason nobody may
// change what was once passed in. A caller that needs its own copy makes one.
//
// # Lists
//
// A list is one value: an upper layer replaces it, and the path of an operation
// does not reach into one.
package values

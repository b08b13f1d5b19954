package release

import "github.com/starling-operator/starling/modules/tree"

// File is one file of a chart, or one file of CRDs.
type File = tree.File

// Chart is a chart's own files.
type Chart = tree.Chart

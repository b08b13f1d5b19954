package release

// File is one file of a chart.
type File struct {
	Path string
	Data []byte
}

// Chart is a chart's own files.
type Chart struct {
	Name   string
	Files  []File
	Values map[string]any
	Digest string
}

// Package stdlib holds the standard library of .star files, which hooks load as
// "@std//k8s.star".
package stdlib

import "embed"

// FS holds the library's files at its root; their tests, which `starling test` runs,
// stay outside.
//
//go:embed certs.star k8s.star sigv4.star testing.star
var FS embed.FS

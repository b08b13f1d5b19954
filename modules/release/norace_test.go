//go:build !race && !e2e

package release

const raced = false

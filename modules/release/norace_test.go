//go:build !race

package release

const raced = false

//go:build !race

package files

const raced = false

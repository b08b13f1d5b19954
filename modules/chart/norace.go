//go:build !race

package chart

const raced = false

// Package clients holds programs that pages name, for tests that run the commands of pages, and what reads the
// configurations of other programs. It is a Go module apart, so that no version in it is one of the product.
package clients

//go:build !unix

package tlsfiles

func pipe(string) error { return nil }

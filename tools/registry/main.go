// Command registry serves an OCI registry that keeps everything in memory, for tests. It prints its
// address, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // however it ends
		os.Exit(0)
	}()
	err = http.Serve(l, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// Command image makes the container image of starling, without a container engine and,
// as long as no base is asked for, without a registry.
//
//	image build -dir .. -out ../bin/image              an OCI layout, for amd64 and arm64
//	image check -layout ../bin/image -extract starling  looks into one
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "build" && args[0] != "check" {
		return errors.New("say what to do: image build …, or image check …")
	}
	fs := flag.NewFlagSet(args[0], flag.ExitOnError)
	platforms := fs.String("platforms", "linux/amd64,linux/arm64", "`list` of what the image is for")
	if args[0] == "check" {
		o := checkOptions{Out: os.Stdout}
		fs.StringVar(&o.Layout, "layout", "", "`folder` with the OCI layout")
		fs.StringVar(&o.Extract, "extract", "", "`file` to write the program of the first platform to")
		most := fs.Int64("most", 28, "the most `MiB` that all layers of a platform may have, compressed")
		_ = fs.Parse(args[1:])
		o.Platforms, o.MaxBytes = strings.Split(*platforms, ","), *most<<20
		return check(o)
	}
	o := buildOptions{Out: os.Stdout}
	fs.StringVar(&o.Dir, "dir", ".", "`folder` of starling's go.mod")
	fs.StringVar(&o.Layout, "out", "", "`folder` to write the OCI layout to; what was there goes")
	fs.StringVar(&o.Base, "base", "scratch", "`image` to build on; scratch: nothing but certificates and a user")
	fs.StringVar(&o.Compression, "compression", "gzip", "`gzip`, which all take, or zstd, which takes a sixth less")
	fs.StringVar(&o.Link, "link", "", "more `flags` of the linker")
	fs.StringVar(&o.Version, "version", "", "`version` that starling says it is")
	fs.StringVar(&o.Modules, "modules", "", "`folder` of a module tree to put into the image, as "+modulesPath)
	fs.StringVar(&o.Push, "push", "", "`name` of the image in a registry to push it to, too")
	_ = fs.Parse(args[1:])
	if o.Layout == "" {
		return errors.New("-out is missing")
	}
	if o.Compression != "gzip" && o.Compression != zstandard {
		return fmt.Errorf("-compression %q is not known; use gzip or zstd", o.Compression)
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	o.Platforms = strings.Split(*platforms, ",")
	if o.Time, err = sourceDate(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	return build(ctx, o)
}

// sourceDate is the time of all files: equal sources make equal images.
func sourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		epoch = "0"
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is no number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

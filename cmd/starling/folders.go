package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/modules/tree"
)

// modulesUsage is what --modules takes.
const modulesUsage = "`folder` of the module tree, or several with : between them"

// linksFlag declares --follow-links.
func linksFlag(fs *pflag.FlagSet, follow *bool) {
	fs.BoolVar(follow, "follow-links", false, "follow links in the module tree that lead out of its folder: whoever writes them has files of this machine read")
}

// oneFolder refuses several folders where files are written.
func oneFolder(modules string) error {
	if len(tree.Folders(modules)) > 1 {
		return fmt.Errorf("--modules %s names several folders; name the one in which files are written", modules)
	}
	return nil
}

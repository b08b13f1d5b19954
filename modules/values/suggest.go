package values

import (
	"fmt"
)

// didYouMean makes the hint of an error; nothing for "".
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", name)
}

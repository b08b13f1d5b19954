package spec

import "fmt"

// maxText is the most bytes of text that a builtin makes or reads.
const MaxText = 32 << 20

func CheckText(n int) error {
	if n > MaxText {
		return fmt.Errorf("the text would be larger than %d MiB", MaxText>>20)
	}
	return nil
}

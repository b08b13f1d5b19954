package object

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkMaskedLine is one log line of a run that has read so many secrets.
func BenchmarkMaskedLine(b *testing.B) {
	line := strings.Repeat("reconciled namespace team-a with 17 objects, ", 5)
	for _, secrets := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(secrets), func(b *testing.B) {
			var m Mask
			for i := range secrets {
				m.Secret(fmt.Sprintf("secret-%d-of-many", i))
			}
			for b.Loop() {
				m.Text(line)
			}
		})
	}
}

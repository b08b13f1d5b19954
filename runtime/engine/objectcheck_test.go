package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestNoSecretInTheCheckOfAnObject(t *testing.T) {
	texts := []string{"config web: the token t0ken-of-a-hook is no good", "config web: text: must be a string"}
	hide(texts, []string{"t0ken-of-a-hook"})
	if strings.Contains(fmt.Sprint(texts), "t0ken") || texts[1] != "config web: text: must be a string" {
		t.Errorf("%q", texts)
	}
}

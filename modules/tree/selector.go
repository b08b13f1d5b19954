package tree

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// ParseSelector reads a selector of modules, as kubectl's --selector is written; nil without a text.
func ParseSelector(text string) (labels.Selector, error) {
	if text == "" {
		return nil, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("it is no selector of labels, such as tier=edge,name!=web: %w", err)
	}
	return selector, nil
}

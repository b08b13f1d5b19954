package values

// Items is in a path for the elements of a list, see [Schema.Types].
const Items = "[]"

// Types returns which types the schema allows at path, in the words of JSON schemas:
// "number" allows integers. nil: any, or the schema does not say.
func (s *Schema) Types(path []string) []string {
	if s == nil {
		return nil
	}
	node := below(s.root, path)
	if node == nil {
		return nil
	}
	switch {
	case node.XIntOrString:
		return []string{"integer", "string"}
	case node.Type == "":
		return nil
	}
	return []string{node.Type}
}

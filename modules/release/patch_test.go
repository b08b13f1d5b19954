package release

import "testing"

func TestWithoutOrder(t *testing.T) {
	for name, test := range map[string]struct{ patch, want string }{
		"nothing":              {`{}`, `{}`},
		"an order alone":       {`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"web"}]}}}}`, `{}`},
		"within an element":    {`{"spec":{"$setElementOrder/containers":[{"name":"web"}],"containers":[{"$setElementOrder/env":[{"name":"A"}],"name":"web"}]}}`, `{}`},
		"beside other fields":  {`{"spec":{"$setElementOrder/containers":[{"name":"web"}],"paused":true}}`, `{"spec":{"paused":true}}`},
		"with a change":        {`{"spec":{"$setElementOrder/containers":[{"name":"web"}],"containers":[{"image":"a","name":"web"}]}}`, `{"spec":{"$setElementOrder/containers":[{"name":"web"}],"containers":[{"image":"a","name":"web"}]}}`},
		"one of two elements":  {`{"containers":[{"$setElementOrder/env":[],"name":"a"},{"image":"b","name":"b"}]}`, `{"containers":[{"image":"b","name":"b"}]}`},
		"an element of a key":  {`{"$setElementOrder/env":[{"name":"A"}],"env":[{"name":"A"}]}`, `{"$setElementOrder/env":[{"name":"A"}],"env":[{"name":"A"}]}`},
		"a list of texts":      {`{"$setElementOrder/finalizers":["a"],"finalizers":["a"]}`, `{"$setElementOrder/finalizers":["a"],"finalizers":["a"]}`},
		"texts that are taken": {`{"$deleteFromPrimitiveList/f":["b"],"$setElementOrder/f":["a"]}`, `{"$deleteFromPrimitiveList/f":["b"],"$setElementOrder/f":["a"]}`},
		"an empty map":         {`{"spec":{"emptyDir":{}}}`, `{"spec":{"emptyDir":{}}}`},
	} {
		if got, err := withoutOrder([]byte(test.patch)); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

package kstatus

// Part returns what [Of] looks at of the spec and the status of an object, in maps that are new: of an object
// with these alone, beside its identity, generation and time of deletion, it says the same.
func Part(obj map[string]any) (spec, status map[string]any) {
	o := object(obj)
	spec, status = scalars(o.at("spec")), scalars(o.at("status"))
	if strategy := object(o.at("spec")).at("updateStrategy"); strategy != nil {
		own := scalars(strategy)
		if rolling := object(strategy).at("rollingUpdate"); rolling != nil {
			own["rollingUpdate"] = scalars(rolling)
		}
		spec["updateStrategy"] = own
	}
	if list, _ := object(o.at("status")).at("loadBalancer")["ingress"].([]any); len(list) > 0 {
		status["loadBalancer"] = map[string]any{"ingress": []any{true}}
	}
	list, _ := o.at("status")["conditions"].([]any)
	var conditions []any
	for _, e := range list {
		if m, _ := e.(map[string]any); m != nil {
			own := map[string]any{}
			for _, key := range []string{"type", "status", "reason", "message"} {
				if t := text(m, key); t != "" {
					own[key] = t
				}
			}
			conditions = append(conditions, own)
		}
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	return spec, status
}

// scalars are the fields of a map that are neither maps nor lists.
func scalars(m map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range m {
		switch v.(type) {
		case map[string]any, []any, nil:
		default:
			out[key] = v
		}
	}
	return out
}

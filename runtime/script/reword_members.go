package script

// MemberHint says how that is written which people of other languages look for in a value, or in a
// namespace of builtins: MemberHint("json", "loads"). Empty: it is nothing that is known.
func MemberHint(of, name string) string {
	switch of {
	case "string", "bytes":
		return textHint(name)
	case "list", "tuple":
		return listHint(of, name)
	case "dict":
		return dictHint(name)
	case "set":
		return setHint(name)
	case "object", "struct":
		return fieldsHint(of, name)
	case "time.time":
		return timeHint(name)
	case "builtin_function_or_method":
		return typeHint(name)
	case "snapshots", "synced":
		return `write ["` + name + `"]: it is a dict by the names of the watches`
	case "expect":
		return expectHint(name)
	}
	return namespaceHint(of + "." + name)
}

func textHint(name string) string {
	switch name {
	case "isnumeric", "isdecimal":
		return "use .isdigit()"
	case "zfill":
		return `write ("00000" + s)[-5:]`
	case "rjust":
		return `write (" " * 10 + s)[-10:]`
	case "ljust", "center":
		return `write (s + " " * 10)[:10]`
	case "encode":
		return "bytes(s) makes bytes of it"
	case "decode":
		return "str(b) makes text of bytes"
	case "casefold", "toLowerCase", "toLower", "downcase":
		return "use .lower()"
	case "toUpperCase", "toUpper", "upcase":
		return "use .upper()"
	case "trim":
		return "use .strip()"
	case "contains", "includes":
		return `write "x" in s`
	case "indexOf":
		return `use .find("x")`
	case "substring", "substr", "slice":
		return "write s[1:3]"
	case "length", "len", "size":
		return "use len(s)"
	case "format_map":
		return "use .format(**d)"
	case "translate", "replaceAll":
		return `use .replace("a", "b")`
	case "reverse":
		return "write s[::-1]"
	case "match", "test":
		return "use re.match(pattern, s)"
	case "append", "concat":
		return `write s + "x"`
	case "strftime", "isoformat", "timestamp", "unix", "total_seconds":
		return "it is text: time.parse_time(s) makes a time of it"
	case "hexdigest", "digest":
		return "it is hexadecimal text already"
	case "items", "keys", "values":
		return "it is text: json.decode(s) or yaml.decode(s) reads it"
	case "get":
		return "it is text, not a dict: json.decode(s) or yaml.decode(s) reads it"
	}
	return ""
}

func listHint(of, name string) string {
	switch name {
	case "sort":
		return "write xs = sorted(xs)"
	case "reverse":
		return "write xs[::-1]"
	case "copy":
		return "use list(xs); copy(xs) copies deeply"
	case "count":
		return "write len([x for x in xs if x == v])"
	case "length", "len", "size":
		return "use len(xs)"
	case "map", "forEach", "each":
		return "write [f(x) for x in xs]"
	case "filter":
		return "write [x for x in xs if f(x)]"
	case "contains", "includes", "has":
		return "write x in xs"
	case "indexOf":
		return "use .index(x)"
	case "first", "last":
		return "write xs[0], xs[-1]"
	case "get":
		return "it is a list: xs[0] if xs else None; [x.name for x in xs] reads each"
	case "items":
		return "it is a list: go over it, or enumerate(xs)"
	case "join":
		return `write ", ".join(xs)`
	case "concat", "merge":
		return "write xs + ys"
	case "update":
		return "use .extend(ys)"
	case "isEmpty", "empty":
		return "write not xs"
	case "append", "add", "push", "extend", "insert", "pop", "remove", "index":
		if of == "tuple" {
			return "a tuple does not change, list(t) makes a list of it; t + (x,) is a longer one"
		}
	}
	switch name {
	case "add", "push", "put", "push_back":
		return "use .append(x)"
	}
	return ""
}

func dictHint(name string) string {
	switch name {
	case "has_key", "has", "contains", "containsKey", "hasOwnProperty":
		return `write "a" in d`
	case "iteritems", "entries":
		return "use .items()"
	case "iterkeys":
		return "use .keys()"
	case "itervalues":
		return "use .values()"
	case "copy", "deepcopy", "clone":
		return "use dict(d); copy(d) copies deeply"
	case "merge":
		return "write a | b"
	case "put", "set", "add", "append":
		return `write d["a"] = 1`
	case "remove", "delete":
		return `use .pop("a", None)`
	case "length", "len", "size":
		return "use len(d)"
	case "sort":
		return "write sorted(d)"
	}
	return ""
}

func setHint(name string) string {
	switch name {
	case "append", "push", "put":
		return "use .add(x)"
	case "contains", "has", "includes":
		return "write x in s"
	case "delete":
		return "use .discard(x)"
	case "length", "len", "size":
		return "use len(s)"
	case "copy":
		return "use set(s)"
	case "items", "values", "keys":
		return "go over it, or use list(s)"
	}
	return ""
}

// fieldsHint is about objects of the cluster, and structs.
func fieldsHint(of, name string) string {
	if of == "struct" {
		switch name {
		case "items", "keys", "values", "_asdict", "__dict__":
			return "write {k: getattr(s, k) for k in dir(s)}"
		case "get":
			return `use getattr(s, "a", None)`
		case "_replace", "update":
			return "a struct does not change: make a new one"
		}
		return ""
	}
	switch name {
	case "items", "values":
		return "write for k, v in dict(o).items(); of the methods of a dict an object has .get alone"
	case "keys":
		return "write for k in o, or list(o)"
	case "has_key":
		return `write "a" in o`
	case "update", "setdefault", "pop", "copy", "clear", "append":
		return "dict(o) makes a copy you may change"
	case "to_dict", "toDict", "asdict":
		return "use dict(o)"
	case "filterResult", "filter_result":
		return "a row of a snapshot is the result of the filter itself: leave ." + name + " out"
	case "object":
		return "a row of a snapshot is the object itself, or what its filter has made of it: leave .object out"
	}
	return ""
}

// expectHint is about what a test expects.
func expectHint(name string) string {
	switch name {
	case "toBe", "toEqual", "toStrictEqual", "equal", "eq", "is_equal_to", "isEqualTo", "is_", "be":
		return "use .equals(y)"
	case "toBeTruthy", "isTrue", "true", "to_be_true":
		return "use .is_true()"
	case "toBeNull", "isNone", "none", "toBeUndefined":
		return "use .is_none()"
	case "toContain", "has", "includes", "contain":
		return "use .contains(y)"
	case "toMatch", "match":
		return "use .matches(pattern)"
	}
	return "it has .equals(y), .contains(y), .matches(pattern), .is_none(), .is_true()"
}

func timeHint(name string) string {
	switch name {
	case "isoformat", "strftime", "date", "toISOString":
		return `use .format("2006-01-02T15:04:05Z07:00"): the time that Go's layouts show`
	case "timestamp", "time", "getTime":
		return "use .unix"
	case "add", "sub", "replace":
		return `write t + time.parse_duration("5m")`
	}
	return ""
}

// typeHint is about functions, which str, dict and copy are.
func typeHint(name string) string {
	switch name {
	case "fromkeys":
		return "write {x: None for x in xs}"
	case "join":
		return `write "".join(xs)`
	case "deepcopy", "copy":
		return "use copy(x)"
	case "get":
		return `call it: env("NAME")`
	case "maketrans":
		return `use .replace("a", "b")`
	}
	return ""
}

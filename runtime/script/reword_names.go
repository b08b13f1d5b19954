package script

import "strings"

// foreignHint helps with undefined names that people bring along from Python, Go and JSON; "" for any other.
func foreignHint(name string) string {
	switch name {
	case "null", "nil", "undefined", "NULL", "Null", "none":
		return "use None"
	case "true":
		return "did you mean True?"
	case "false":
		return "did you mean False?"
	case "isinstance", "issubclass", "typeof":
		return `use type(x) == "dict"; objects of the cluster are "object"`
	case "callable":
		return `use type(x) == "function"`
	case "map":
		return "write a list: [f(x) for x in xs]"
	case "filter":
		return "write a list: [x for x in xs if f(x)]"
	case "sum", "reduce":
		return "add up in a for loop: total += x"
	case "round":
		return "use int(math.round(x))"
	case "pow":
		return "use int(math.pow(x, y))"
	case "divmod":
		return "use x // y and x % y"
	case "iter", "next":
		return "go over it in a for loop, or take xs[0]"
	case "slice":
		return "write xs[1:3]"
	case "format":
		return `write "%s" % x`
	case "hex", "bin", "oct":
		return `write "%x" % n; %o gives octal digits`
	case "unicode", "basestring":
		return "use str(x)"
	case "long":
		return "use int(x); an int has any size"
	case "xrange":
		return "use range(n)"
	case "frozenset":
		return "use set(xs)"
	case "bytearray":
		return "use bytes(text)"
	case "namedtuple", "dataclass":
		return "use struct(a = 1)"
	case "defaultdict":
		return "use d.setdefault(key, []).append(x)"
	case "Counter":
		return "use d[key] = d.get(key, 0) + 1"
	case "OrderedDict":
		return "use {}: a dict keeps its order"
	case "deepcopy":
		return "use copy(x)"
	case "open", "Path", "pathlib":
		return `module.file("name") gives the text of a file of the module; hooks reach other files only through the cluster`
	case "os", "getenv", "environ":
		return `use env("NAME"); hooks reach files, processes and the network only through builtins`
	case "sys":
		return "use log.error(msg), fail(msg)"
	case "subprocess", "Popen":
		return "hooks start no processes; k8s.exec(pod, argv) runs a command in a container"
	case "requests", "urllib", "urlopen", "httpx", "aiohttp":
		return "use http.get(url)"
	case "socket":
		return "use http.get(url): hooks reach the network only through builtins"
	case "datetime":
		return "use time.now(), time.parse_time(text)"
	case "timedelta":
		return `use time.parse_duration("5m")`
	case "cron", "crontab":
		return `use schedule("*/5 * * * *")`
	case "interval", "every", "timer", "ticker":
		return `use schedule("@every 5m")`
	case "sleep":
		return `use requeue("30s"): it runs the hook again, and holds nothing up`
	case "uuid", "uuid4":
		return "use random.uuid()"
	case "randint":
		return "use random.int(1, 6)"
	case "logging", "logger", "console":
		return "use log.info(msg)"
	case "hashlib":
		return "use hash.sha256(text)"
	case "b64encode", "b64decode":
		return "use base64.encode(text), base64.decode(text)"
	case "itertools", "functools", "collections", "typing":
		return "loops, dicts and struct(a = 1) do the same"
	case "kubernetes", "kubectl":
		return `use k8s.get("v1", "Node", name), k8s.list(…), k8s.apply(obj)`
	case "exec", "eval":
		return "code is not run from text: json.decode(text) and yaml.decode(text) read data"
	case "input", "argv":
		return `use values.get("path"), or env("NAME")`
	case "setattr", "delattr":
		return "structs do not change: make a new one, or a dict"
	case "locals", "globals", "vars":
		return "use dir(x) for the names of its members"
	case "self", "super", "cls":
		return "there are no classes: hand over what the function needs as an argument"
	case "panic", "throw", "abort", "exit", "quit":
		return "use fail(msg)"
	case "__name__", "__main__", "__file__":
		return "a file is loaded, and hook(fn, on = […]) says when a function runs"
	case "printf", "println", "echo", "fmt":
		return `use print("n: %d" % n)`
	case "append":
		return "use xs.append(x)"
	case "Sprintf", "sprintf":
		return `write "n: %d" % n`
	case "assert":
		return `use fail(msg) in a hook; assert is there in tests: assert.eq(a, b)`
	}
	if strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception") || name == "StopIteration" {
		return "errors have no types: use fail(msg)"
	}
	return ""
}

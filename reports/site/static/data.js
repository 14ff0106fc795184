// Data come as scripts that call site.put, as browsers fetch nothing beside a page that is opened from a file.
var site = { data: {}, own: null, put: function (name, value) { site.data[name] = value; } };

// Data are scripts that call site.put, because browsers fetch no data for a page that is opened from a file.
var site = { data: {}, seed: null, put: function (name, value) { site.data[name] = value; } };

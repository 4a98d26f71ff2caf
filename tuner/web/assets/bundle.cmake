# Run by `cmake -P` when the page is built: bundles tuner/web/page by esbuild, names what comes out by its content's
# hash in index.html, and compresses all of it as far as it goes, since it is done once.
#
#   PAGE     the folder with main.tsx, page.css, theme.css and index.html
#   OUT      gets app.js, app.css, index.html, each with .br and .gz beside it, and web_assets.inc: the table's rows
#   ESBUILD, BROTLI, GZIP   the programs
#   MODULES  the folder that holds react, react-dom and d3's modules

function(espalier_run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE _failed OUTPUT_VARIABLE _out ERROR_VARIABLE _err)
  if(_failed)
    list(JOIN ARGN " " _words)
    message(FATAL_ERROR "${_words}\n${_out}${_err}")
  endif()
endfunction()

file(MAKE_DIRECTORY ${OUT})
set(ENV{NODE_PATH} ${MODULES})
espalier_run(${ESBUILD} ${PAGE}/main.tsx --bundle --minify --target=es2020 --charset=utf8 --main-fields=module,main
             --jsx=automatic --legal-comments=none --define:process.env.NODE_ENV="production" --log-level=warning
             --outfile=${OUT}/app.js)
espalier_run(${ESBUILD} ${PAGE}/page.css --bundle --minify --log-level=warning --outfile=${OUT}/app.css)

file(READ ${PAGE}/index.html _index)
foreach(_kind js css)
  file(SHA256 ${OUT}/app.${_kind} _hash)
  string(SUBSTRING ${_hash} 0 16 _hash)
  set(_path_${_kind} app.${_hash}.${_kind})
endforeach()
string(REPLACE "@SCRIPT@" "${_path_js}" _index "${_index}")
string(REPLACE "@STYLE@" "${_path_css}" _index "${_index}")
file(WRITE ${OUT}/index.html "${_index}")

foreach(_file app.js app.css index.html)
  espalier_run(${BROTLI} -f -q 11 -o ${OUT}/${_file}.br ${OUT}/${_file})
  # Without name and time: the same sources give the same bytes.
  execute_process(COMMAND ${GZIP} -9 -n -c ${OUT}/${_file} OUTPUT_FILE ${OUT}/${_file}.gz RESULT_VARIABLE _failed)
  if(_failed)
    message(FATAL_ERROR "${GZIP} could not compress ${OUT}/${_file}")
  endif()
endforeach()
file(WRITE ${OUT}/web_assets.inc
  "ASSET(\"/\", \"text/html; charset=utf-8\", index_html)\n"
  "ASSET(\"/ui-assets/${_path_js}\", \"text/javascript; charset=utf-8\", app_js)\n"
  "ASSET(\"/ui-assets/${_path_css}\", \"text/css; charset=utf-8\", app_css)\n")

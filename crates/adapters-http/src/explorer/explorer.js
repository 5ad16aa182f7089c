'use strict';

// The document may name the public URL of the API. This page sends requests to the origin that it was loaded from.
const OwnServer = {
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (update) => (document) =>
          update({ ...document, servers: [{ url: 'v1', description: 'This instance' }] }),
      },
    },
  },
};

// As JSON, Swagger UI would parse a body and round its integers beyond 2^53.
const BodyAsReceived = {
  wrapComponents: {
    responseBody: (Original, { React }) => (properties) =>
      React.createElement(Original, { ...properties, contentType: 'text' }),
  },
};

// Names that Swagger UI leaves out, or that lack the visible text.
const NAMES = {
  '#servers:not([aria-label])': 'Server',
  '.close-modal:not([aria-label])': 'Close',
  '.body-param__text:not([aria-label])': 'Request body',
  '.examples-select-element:not([aria-label])': 'Example',
  '.parameters-col_description > select:not([aria-label])': 'Value of the parameter',
  '.copy-to-clipboard button:not([aria-label])': 'Copy',
  '[aria-label="Apply credentials"]': 'Authorize: apply credentials',
  '[aria-label="Remove authorization"]': 'Logout: remove authorization',
};

// Texts that are scrolled have to be reachable without a mouse.
const SCROLLED = '.curl:not([tabindex]), .microlight:not([tabindex])';

const complete = () => {
  for (const [selector, name] of Object.entries(NAMES)) {
    document.querySelectorAll(selector).forEach((element) => element.setAttribute('aria-label', name));
  }
  document.querySelectorAll(SCROLLED).forEach((element) => element.setAttribute('tabindex', '0'));
};
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#explorer',
  deepLinking: true,
  displayRequestDuration: true,
  plugins: [OwnServer, BodyAsReceived],
  tryItOutEnabled: true,
  // Neither the document nor the API key leaves this origin.
  validatorUrl: null,
  persistAuthorization: false,
});
